import jakarta.jms.*;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** JMS messages as four texts: kind, body, properties and headers; see {@link Values}. */
final class Messages {
  private static final Map<String, String> PROVIDED =
      Map.of("count", "JMSXDeliveryCount", "group", "JMSXGroupID", "sequence", "JMSXGroupSeq");

  private Messages() {}

  static Message make(Session session, String kind, String body) throws JMSException {
    switch (kind) {
      case "text":
        return session.createTextMessage((String) Values.read(body));
      case "bytes":
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeBytes((byte[]) Values.read(body));
        return bytes;
      case "map":
        MapMessage map = session.createMapMessage();
        for (Map.Entry<String, Object> each : Values.readNamed(body).entrySet())
          map.setObject(each.getKey(), each.getValue());
        return map;
      case "stream":
        StreamMessage stream = session.createStreamMessage();
        for (Object each : Values.readAll(body)) stream.writeObject(each);
        return stream;
      case "object":
        return session.createObjectMessage((Serializable) new ArrayList<>(Values.readAll(body)));
      case "none":
        return session.createMessage();
      default:
        throw new IllegalArgumentException("no kind " + kind);
    }
  }

  /** Sets those headers that are the message's own; the others are arguments of send. */
  static void set(Session session, Message message, Map<String, Object> properties, Map<String, Object> headers)
      throws JMSException {
    for (Map.Entry<String, Object> each : properties.entrySet())
      message.setObjectProperty(each.getKey(), each.getValue());
    Object correlation = headers.get("correlation");
    if (correlation instanceof byte[] bytes) message.setJMSCorrelationIDAsBytes(bytes);
    else if (correlation != null) message.setJMSCorrelationID((String) correlation);
    if (headers.containsKey("type")) message.setJMSType((String) headers.get("type"));
    if (headers.containsKey("reply")) message.setJMSReplyTo(destination(session, (String) headers.get("reply")));
    if (headers.containsKey("group")) message.setStringProperty("JMSXGroupID", (String) headers.get("group"));
    if (headers.containsKey("sequence")) message.setIntProperty("JMSXGroupSeq", (Integer) headers.get("sequence"));
  }

  static String describe(Message message) throws JMSException {
    Map<String, Object> properties = new TreeMap<>();
    for (Object name : Collections.list(message.getPropertyNames()))
      if (!PROVIDED.containsValue(name)) properties.put((String) name, message.getObjectProperty((String) name));
    return String.join("\t", kindAndBody(message), Values.write(properties), Values.write(headers(message)));
  }

  private static String kindAndBody(Message message) throws JMSException {
    if (message instanceof TextMessage text) return "text\t" + Values.write(text.getText());
    if (message instanceof BytesMessage bytes) {
      byte[] content = new byte[(int) bytes.getBodyLength()];
      bytes.readBytes(content);
      return "bytes\t" + Values.write(content);
    }
    if (message instanceof MapMessage map) {
      Map<String, Object> values = new TreeMap<>();
      for (Object name : Collections.list(map.getMapNames())) values.put((String) name, map.getObject((String) name));
      return "map\t" + Values.write(values);
    }
    if (message instanceof StreamMessage stream) return "stream\t" + Values.write(elements(stream));
    if (message instanceof ObjectMessage object) return "object\t" + Values.write(String.valueOf(object.getObject()));
    return "none\t";
  }

  private static List<Object> elements(StreamMessage stream) throws JMSException {
    List<Object> values = new ArrayList<>();
    try {
      while (true) values.add(stream.readObject());
    } catch (MessageEOFException end) {
      return values;
    }
  }

  private static Map<String, Object> headers(Message message) throws JMSException {
    Map<String, Object> headers = new TreeMap<>();
    headers.put("id", message.getJMSMessageID());
    headers.put("destination", name(message.getJMSDestination()));
    headers.put("reply", name(message.getJMSReplyTo()));
    headers.put("correlation", message.getJMSCorrelationID());
    headers.put("type", message.getJMSType());
    headers.put("timestamp", message.getJMSTimestamp());
    headers.put("expiration", message.getJMSExpiration());
    headers.put("priority", message.getJMSPriority());
    headers.put("persistent", message.getJMSDeliveryMode() == DeliveryMode.PERSISTENT);
    headers.put("redelivered", message.getJMSRedelivered());
    for (Map.Entry<String, String> each : PROVIDED.entrySet())
      if (message.propertyExists(each.getValue())) headers.put(each.getKey(), message.getObjectProperty(each.getValue()));
    return headers;
  }

  static Destination destination(Session session, String name) throws JMSException {
    String[] parts = name.split("://", 2);
    return parts[0].equals("topic") ? session.createTopic(parts[1]) : session.createQueue(parts[1]);
  }

  private static String name(Destination destination) throws JMSException {
    if (destination == null) return null;
    if (destination instanceof TemporaryQueue queue) return "temp-queue://" + queue.getQueueName();
    if (destination instanceof TemporaryTopic topic) return "temp-topic://" + topic.getTopicName();
    if (destination instanceof Queue queue) return "queue://" + queue.getQueueName();
    return "topic://" + ((Topic) destination).getTopicName();
  }
}
