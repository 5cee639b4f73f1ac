import jakarta.jms.*;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * The other end of the tests with Java clients. Reads one request a line, its words divided by tabs, and answers with
 * lines, the last of which is {@code done} or {@code failed} and why.
 *
 * <pre>
 * send URL DESTINATION KIND BODY PROPERTIES HEADERS   answers with the message as sent
 * receive URL DESTINATION N                           up to N messages, as they come; waits 10 s for each
 * rollback URL DESTINATION TIMES                      receives one that often and rolls back; answers with each
 * request URL DESTINATION                             sends a text whose reply-to is a temporary queue
 * reply URL DESTINATION                               the reply to it
 * close                                               all connections
 * </pre>
 *
 * The URL is ActiveMQ's ({@code tcp://}, OpenWire) or Qpid JMS's ({@code amqp://}), and may begin with user and
 * password; connections are kept.
 */
public class Peer {
  private static final Map<String, Connection> connections = new HashMap<>();
  private static final Map<String, MessageConsumer> replies = new HashMap<>();
  private static PrintStream out;

  public static void main(String[] arguments) throws Exception {
    out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      try {
        execute(line.split("\t", -1));
        out.println("done");
      } catch (JMSException | RuntimeException error) {
        out.println("failed\t" + Values.write(String.valueOf(error)));
      }
    }
    close();
  }

  private static void execute(String[] words) throws JMSException {
    if (words[0].equals("close")) {
      close();
      return;
    }
    Connection connection = connection(words[1]);
    switch (words[0]) {
      case "send" -> send(connection, words);
      case "receive" -> receive(connection, words[2], Integer.parseInt(words[3]));
      case "rollback" -> rollBack(connection, words[2], Integer.parseInt(words[3]));
      case "request" -> request(connection, words[2]);
      case "reply" -> {
        show(replies.get(words[2]).receive(10_000));
      }
      default -> throw new IllegalArgumentException("no request " + words[0]);
    }
  }

  private static Connection connection(String url) throws JMSException {
    Connection open = connections.get(url);
    if (open != null) return open;
    String user = URI.create(url).getUserInfo();
    String bare = user == null ? url : url.replace(user + "@", "");
    ConnectionFactory factory = bare.startsWith("amqp") ? amqp(bare) : openWire(bare);
    String[] login = user == null ? new String[2] : user.split(":", 2);
    open = factory.createConnection(login[0], login[1]);
    open.start();
    connections.put(url, open);
    return open;
  }

  /** Without these limits Qpid JMS waits for ever. What the URL says goes before. */
  private static ConnectionFactory amqp(String url) {
    String limits = "jms.requestTimeout=20000&jms.closeTimeout=5000";
    return new JmsConnectionFactory(url.contains("jms.requestTimeout") ? url : url + "?" + limits);
  }

  private static ConnectionFactory openWire(String url) {
    ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(url);
    factory.setTrustAllPackages(true);
    return factory;
  }

  private static void send(Connection connection, String[] words) throws JMSException {
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    try {
      Map<String, Object> headers = Values.readNamed(words[6]);
      Message message = Messages.make(session, words[3], words[4]);
      Messages.set(session, message, Values.readNamed(words[5]), headers);
      MessageProducer producer = session.createProducer(Messages.destination(session, words[2]));
      boolean persistent = (Boolean) headers.getOrDefault("persistent", true);
      producer.send(
          message,
          persistent ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT,
          (Integer) headers.getOrDefault("priority", 4),
          (Long) headers.getOrDefault("ttl", 0L));
      out.println("sent\t" + Values.write(message.getJMSMessageID()));
    } finally {
      session.close();
    }
  }

  private static void receive(Connection connection, String destination, int count) throws JMSException {
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    try {
      MessageConsumer consumer = session.createConsumer(Messages.destination(session, destination));
      for (int left = count; left > 0; left--) if (!show(consumer.receive(10_000))) return;
    } finally {
      session.close();
    }
  }

  private static void rollBack(Connection connection, String destination, int times) throws JMSException {
    Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
    try {
      MessageConsumer consumer = session.createConsumer(Messages.destination(session, destination));
      for (int left = times; left > 0; left--) {
        show(consumer.receive(10_000));
        session.rollback();
      }
    } finally {
      session.close();
    }
  }

  private static void request(Connection connection, String destination) throws JMSException {
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    Queue queue = session.createTemporaryQueue();
    replies.put(destination, session.createConsumer(queue));
    Message message = session.createTextMessage("request");
    message.setJMSReplyTo(queue);
    session.createProducer(Messages.destination(session, destination)).send(message);
  }

  private static boolean show(Message message) throws JMSException {
    if (message != null) out.println("message\t" + Messages.describe(message));
    return message != null;
  }

  private static void close() throws JMSException {
    for (Connection each : connections.values()) each.close();
    connections.clear();
    replies.clear();
  }
}
