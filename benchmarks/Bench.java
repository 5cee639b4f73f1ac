import jakarta.jms.BytesMessage;
import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQMessageProducer;
import org.apache.activemq.ActiveMQSession;
import org.apache.activemq.AsyncCallback;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * activemq-client (tcp://) and qpid-jms (amqp://) as their users use them. Each line read is a run, "URL QUEUE COUNT
 * consume MODE BATCH" or "URL QUEUE COUNT send WINDOW"; each line written is its seconds, or the error.
 */
public final class Bench {
  private static final long PATIENCE = 30_000;
  private static final int INDIVIDUAL = ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE;
  private static final int INDIVIDUAL_OF_QPID = 101;

  private final boolean qpid;
  private final ConnectionFactory factory;
  private final String user;
  private final String password;

  private Bench(URI uri) {
    qpid = uri.getScheme().equals("amqp");
    String url = uri.getScheme() + "://" + uri.getHost() + ":" + uri.getPort();
    // RabbitMQ does not answer every close as qpid-jms expects it
    String options = "?jms.closeTimeout=2000&jms.requestTimeout=30000";
    factory = qpid ? new JmsConnectionFactory(url + options) : new ActiveMQConnectionFactory(url);
    String[] login = uri.getUserInfo() == null ? new String[2] : uri.getUserInfo().split(":");
    user = login[0];
    password = login[1];
  }

  public static void main(String[] arguments) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] run = line.split(" ");
      int count = Integer.parseInt(run[2]);
      int value = Integer.parseInt(run[4]);
      try {
        Bench bench = new Bench(URI.create(run[0]));
        System.out.println(
            run[3].equals("send")
                ? bench.send(run[1], count, value)
                : bench.consume(run[1], count, value, Integer.parseInt(run[5])));
      } catch (JMSException | InterruptedException | RuntimeException error) {
        System.out.println(error.toString().replace('\n', ' '));
      }
    }
  }

  /** MODE is the number of JMS (4: INDIVIDUAL_ACKNOWLEDGE, as ActiveMQ has it); BATCH, in a transaction, per commit. */
  private double consume(String queue, int count, int mode, int batch) throws JMSException {
    try (Connection connection = connect()) {
      Session session =
          connection.createSession(
              mode == Session.SESSION_TRANSACTED, qpid && mode == INDIVIDUAL ? INDIVIDUAL_OF_QPID : mode);
      long read = 0;
      long start = System.nanoTime();
      MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
      for (int number = 1; number <= count; number++) {
        Message message = consumer.receive(PATIENCE);
        if (message == null) {
          throw new IllegalStateException("message " + number + " of " + count + " did not come");
        }
        String id = message.getJMSMessageID(); // null where the sender's protocol has none
        read += length(message) + (id == null ? 0 : id.length());
        if (mode == INDIVIDUAL) {
          message.acknowledge();
        } else if (mode == Session.SESSION_TRANSACTED && number % batch == 0) {
          session.commit();
        }
      }
      double seconds = (System.nanoTime() - start) / 1e9;
      if (read < count) {
        throw new IllegalStateException("empty messages");
      }
      return seconds;
    }
  }

  private Connection connect() throws JMSException {
    Connection connection = factory.createConnection(user, password);
    connection.start();
    return connection;
  }

  private static long length(Message message) throws JMSException {
    return message instanceof TextMessage text ? text.getText().length() : ((BytesMessage) message).getBodyLength();
  }

  /** Persistent; WINDOW 1 waits for each answer, more lets so many be open. */
  private double send(String queue, int count, int window) throws JMSException, InterruptedException {
    try (Connection connection = connect()) {
      Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      MessageProducer producer = session.createProducer(session.createQueue(queue));
      producer.setDeliveryMode(DeliveryMode.PERSISTENT);
      String body = "x".repeat(1024);
      Answers answers = new Answers(window);
      long start = System.nanoTime();
      for (int number = 0; number < count; number++) {
        Message message = session.createTextMessage(body);
        if (window == 1) {
          producer.send(message);
          continue;
        }
        answers.open.acquire();
        if (producer instanceof ActiveMQMessageProducer activemq) {
          activemq.send(message, (AsyncCallback) answers);
        } else {
          producer.send(message, (CompletionListener) answers);
        }
      }
      if (!answers.open.tryAcquire(window, PATIENCE, TimeUnit.MILLISECONDS)) {
        throw new IllegalStateException("not every send was answered");
      }
      if (!answers.refused.isEmpty()) {
        throw new IllegalStateException(answers.refused.peek());
      }
      return (System.nanoTime() - start) / 1e9;
    }
  }

  /** The window of a sender: ActiveMQ's callback, and that of JMS 2.0. */
  private static final class Answers implements AsyncCallback, CompletionListener {
    final Semaphore open;
    final Queue<Exception> refused = new ConcurrentLinkedQueue<>();

    Answers(int window) {
      open = new Semaphore(window);
    }

    @Override
    public void onSuccess() {
      open.release();
    }

    @Override
    public void onCompletion(Message message) {
      open.release();
    }

    @Override
    public void onException(JMSException error) {
      refused.add(error);
      open.release();
    }

    @Override
    public void onException(Message message, Exception error) {
      refused.add(error);
      open.release();
    }
  }
}
