import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Collections;
import java.util.TreeMap;
import javax.jms.*;
import org.apache.activemq.ActiveMQConnectionFactory;

/**
 * The other end of the tests with a Java client.
 *
 * <pre>
 * send URL QUEUE          one message of each kind
 * receive URL QUEUE N     prints a line for each: kind, body, properties, headers; fields divided by tabs
 * </pre>
 *
 * Text is written in Base64 of its UTF-8; a map or the properties as {@code name=type:Base64} divided by commas.
 */
public class Peer {
  public static void main(String[] arguments) throws Exception {
    Connection connection = new ActiveMQConnectionFactory(arguments[1]).createConnection();
    try {
      connection.start();
      Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      Queue queue = session.createQueue(arguments[2]);
      if (arguments[0].equals("send")) {
        send(session, session.createProducer(queue));
      } else {
        MessageConsumer consumer = session.createConsumer(queue);
        for (int left = Integer.parseInt(arguments[3]); left > 0; left--) {
          Message message = consumer.receive(10_000);
          if (message == null) throw new JMSException("nothing came");
          System.out.println(describe(message));
        }
      }
    } finally {
      connection.close();
    }
  }

  static void send(Session session, MessageProducer producer) throws JMSException {
    TextMessage text = session.createTextMessage("naïve Straße 日本語\nline:\\");
    text.setStringProperty("colour", "red:\n");
    text.setIntProperty("number", 7);
    text.setBooleanProperty("yes", true);
    text.setJMSCorrelationID("c:1");
    text.setJMSType("order");
    text.setJMSReplyTo(session.createTopic("replies"));
    producer.send(text, DeliveryMode.PERSISTENT, 7, 0);

    producer.send(session.createTextMessage(""));

    byte[] all = new byte[256];
    for (int at = 0; at < 256; at++) all[at] = (byte) at;
    BytesMessage bytes = session.createBytesMessage();
    bytes.writeBytes(all);
    producer.send(bytes);

    MapMessage map = session.createMapMessage();
    map.setString("name", "Ada");
    map.setInt("count", 3);
    map.setBoolean("yes", true);
    map.setDouble("share", 0.5);
    map.setLong("long", 1L << 40);
    producer.send(map);

    producer.send(session.createMessage(), DeliveryMode.NON_PERSISTENT, 4, 0);
  }

  static String describe(Message message) throws JMSException {
    String kind, body = "";
    if (message instanceof TextMessage) {
      kind = "text";
      body = encode(((TextMessage) message).getText());
    } else if (message instanceof BytesMessage) {
      kind = "bytes";
      BytesMessage bytes = (BytesMessage) message;
      byte[] content = new byte[(int) bytes.getBodyLength()];
      bytes.readBytes(content);
      body = Base64.getEncoder().encodeToString(content);
    } else if (message instanceof MapMessage) {
      kind = "map";
      MapMessage map = (MapMessage) message;
      TreeMap<String, Object> values = new TreeMap<>();
      for (Object name : Collections.list(map.getMapNames())) values.put((String) name, map.getObject((String) name));
      body = encode(values);
    } else {
      kind = message.getClass().getSimpleName();
    }
    TreeMap<String, Object> properties = new TreeMap<>();
    for (Object name : Collections.list(message.getPropertyNames()))
      properties.put((String) name, message.getObjectProperty((String) name));
    TreeMap<String, Object> headers = new TreeMap<>();
    headers.put("correlation", message.getJMSCorrelationID());
    headers.put("type", message.getJMSType());
    headers.put("reply", message.getJMSReplyTo());
    headers.put("priority", message.getJMSPriority());
    headers.put("persistent", message.getJMSDeliveryMode() == DeliveryMode.PERSISTENT);
    headers.put("group", message.getStringProperty("JMSXGroupID"));
    return String.join("\t", kind, body, encode(properties), encode(headers));
  }

  static String encode(TreeMap<String, Object> values) {
    StringBuilder line = new StringBuilder();
    values.forEach((name, value) -> {
      String type = value == null ? "null" : value.getClass().getSimpleName();
      line.append(name).append('=').append(type).append(':').append(encode(String.valueOf(value))).append(',');
    });
    return line.toString();
  }

  static String encode(String text) {
    return text == null ? "-" : Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
  }
}
