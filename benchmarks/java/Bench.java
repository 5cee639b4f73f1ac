import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayDeque;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQMessageProducer;
import org.apache.activemq.ActiveMQSession;
import org.apache.activemq.AsyncCallback;

/**
 * activemq-client as its users use it. Argument: the OpenWire URL. Each line read is a run,
 * "consume QUEUE COUNT MODE BATCH" or "send QUEUE COUNT WINDOW"; each line written is its seconds, or the error.
 */
public final class Bench {
  private static final long PATIENCE = 60_000;

  private final ActiveMQConnectionFactory factory;

  private Bench(String url) {
    factory = new ActiveMQConnectionFactory(url);
  }

  public static void main(String[] arguments) throws Exception {
    Bench bench = new Bench(arguments[0]);
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] run = line.split(" ");
      int count = Integer.parseInt(run[2]);
      try {
        System.out.println(
            run[0].equals("send")
                ? bench.send(run[1], count, Integer.parseInt(run[3]))
                : bench.consume(run[1], count, Integer.parseInt(run[3]), Integer.parseInt(run[4])));
      } catch (JMSException | InterruptedException | IllegalStateException error) {
        System.out.println(error);
      }
    }
  }

  /** MODE is the number of JMS (4: ActiveMQ's INDIVIDUAL_ACKNOWLEDGE); BATCH, in a transaction, per commit. */
  private double consume(String queue, int count, int mode, int batch) throws JMSException {
    try (Connection connection = factory.createConnection()) {
      connection.start();
      Session session = connection.createSession(mode == Session.SESSION_TRANSACTED, mode);
      long read = 0;
      long start = System.nanoTime();
      MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
      for (int number = 1; number <= count; number++) {
        Message message = consumer.receive(PATIENCE);
        if (message == null) {
          throw new IllegalStateException("message " + number + " of " + count + " did not come");
        }
        read += length(message) + message.getJMSMessageID().length();
        if (mode == ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE) {
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

  private static long length(Message message) throws JMSException {
    return message instanceof TextMessage text ? text.getText().length() : ((BytesMessage) message).getBodyLength();
  }

  /** Persistent; WINDOW 1 waits for each answer, more lets so many be open. */
  private double send(String queue, int count, int window) throws JMSException, InterruptedException {
    try (Connection connection = factory.createConnection()) {
      connection.start();
      Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      ActiveMQMessageProducer producer =
          (ActiveMQMessageProducer) session.createProducer(session.createQueue(queue));
      producer.setDeliveryMode(DeliveryMode.PERSISTENT);
      String body = "x".repeat(1024);
      Semaphore open = new Semaphore(window);
      ArrayDeque<JMSException> refused = new ArrayDeque<>();
      AsyncCallback answered =
          new AsyncCallback() {
            @Override
            public void onSuccess() {
              open.release();
            }

            @Override
            public void onException(JMSException error) {
              refused.add(error);
              open.release();
            }
          };
      long start = System.nanoTime();
      for (int number = 0; number < count; number++) {
        if (window == 1) {
          producer.send(session.createTextMessage(body));
        } else {
          open.acquire();
          producer.send(session.createTextMessage(body), answered);
        }
      }
      if (!open.tryAcquire(window, PATIENCE, TimeUnit.MILLISECONDS)) {
        throw new IllegalStateException("not every send was answered");
      }
      if (!refused.isEmpty()) {
        throw refused.peek();
      }
      return (System.nanoTime() - start) / 1e9;
    }
  }
}
