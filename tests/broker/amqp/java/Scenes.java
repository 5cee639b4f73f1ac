import jakarta.jms.*;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.qpid.jms.JmsConnectionFactory;

/** What a program of Qpid JMS does with the embedded broker; prints "scene: what it saw", a line each. */
public class Scenes {
  private static final int WAIT = 10_000; // milliseconds
  private static String url;

  private interface Scene {
    Object play(Connection connection) throws Exception;
  }

  public static void main(String[] arguments) throws Exception {
    url = arguments[0];
    play("commit", Scenes::commit);
    play("rollback", Scenes::rollback);
    play("counts", Scenes::counts);
    play("recover", Scenes::recover);
    play("browser", Scenes::browser);
    play("temporary", Scenes::temporary);
    play("topic", Scenes::topic);
    play("listener", Scenes::listener);
    play("receiveNoWait", c -> text(session(c).createConsumer(queue(c, "empty")).receiveNoWait()));
    play("exhausted", Scenes::exhausted);
    play("delay", Scenes::delay);
    play("kinds", Scenes::kinds);
    play("durable", Scenes::durable);
    play("shared", Scenes::shared);
    play("shared durable", Scenes::sharedDurable);
    play("selector", Scenes::selector);
    play("bad selector", c -> session(c).createConsumer(queue(c, "s"), "JMSPriority = 'x' AND = 1"));
    play("unsubscribe", c -> { session(c).unsubscribe("name"); return null; });
    play("client id", Scenes::clientId);
  }

  private static void play(String name, Scene scene) throws JMSException {
    try (Connection connection = new JmsConnectionFactory(url).createConnection()) {
      connection.setClientID(name);
      connection.start();
      String seen;
      try {
        seen = String.valueOf(scene.play(connection));
      } catch (Exception error) {
        seen = error.getClass().getSimpleName() + ": " + error.getMessage();
      }
      System.out.println(name + ": " + seen.replace('\n', ' '));
    }
  }

  private static Object commit(Connection connection) throws Exception {
    Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
    MessageProducer producer = session.createProducer(queue(connection, "tx"));
    producer.send(session.createTextMessage("undone"));
    session.rollback();
    producer.send(session.createTextMessage("one"));
    producer.send(session.createTextMessage("two"));
    session.commit();
    MessageConsumer consumer = session.createConsumer(queue(connection, "tx"));
    List<String> seen = List.of(text(consumer.receive(WAIT)), text(consumer.receive(WAIT)));
    session.commit();
    return seen + " then " + text(consumer.receive(300));
  }

  private static Object rollback(Connection connection) throws Exception {
    Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
    session.createProducer(queue(connection, "back")).send(session.createTextMessage("kept"));
    session.commit();
    MessageConsumer consumer = session.createConsumer(queue(connection, "back"));
    session.createProducer(queue(connection, "elsewhere")).send(session.createTextMessage("undone"));
    consumer.receive(WAIT);
    consumer.close();
    session.rollback();
    String again = text(session.createConsumer(queue(connection, "back")).receive(WAIT));
    session.commit();
    return again + ", elsewhere " + text(session.createConsumer(queue(connection, "elsewhere")).receive(300));
  }

  private static Object counts(Connection connection) throws Exception {
    Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
    session.createProducer(queue(connection, "counts")).send(session.createTextMessage("m"));
    session.commit();
    MessageConsumer consumer = session.createConsumer(queue(connection, "counts"));
    List<String> seen = new ArrayList<>();
    for (int turn = 0; turn < 4; turn++) {
      seen.add(count(consumer.receive(WAIT)));
      if (turn < 3) session.rollback(); else session.commit();
    }
    return seen + " then " + text(consumer.receive(300));
  }

  private static Object recover(Connection connection) throws Exception {
    Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
    MessageProducer producer = session.createProducer(queue(connection, "recover"));
    for (String body : List.of("a", "b")) producer.send(session.createTextMessage(body));
    MessageConsumer consumer = session.createConsumer(queue(connection, "recover"));
    List<String> seen = new ArrayList<>();
    for (int turn = 0; turn < 2; turn++) seen.add(count(consumer.receive(WAIT)));
    session.recover();
    Message last = null;
    for (int turn = 0; turn < 2; turn++) seen.add(count(last = consumer.receive(WAIT)));
    last.acknowledge();
    return seen + " then " + text(consumer.receive(300));
  }

  private static Object browser(Connection connection) throws Exception {
    Session session = session(connection);
    Queue queue = queue(connection, "browse");
    MessageProducer producer = session.createProducer(queue);
    for (String body : List.of("a", "b", "c")) producer.send(session.createTextMessage(body));
    List<String> seen = new ArrayList<>();
    try (QueueBrowser browser = session.createBrowser(queue)) {
      for (Object each : Collections.list(browser.getEnumeration())) seen.add(text((Message) each));
    }
    return seen + " and " + text(session.createConsumer(queue).receive(WAIT));
  }

  private static Object durable(Connection connection) throws Exception {
    Session session = session(connection);
    Topic topic = session.createTopic("durable");
    MessageProducer producer = session.createProducer(topic);
    session.createDurableSubscriber(topic, "name").close();
    producer.send(session.createTextMessage("kept"));
    MessageConsumer again = session.createDurableConsumer(topic, "name");
    String seen = text(again.receive(WAIT));
    again.close();
    producer.send(session.createTextMessage("lost"));
    session.unsubscribe("name");
    return seen + " then " + text(session.createDurableConsumer(topic, "name").receive(300));
  }

  private static Object shared(Connection connection) throws Exception {
    Session session = session(connection);
    Topic topic = session.createTopic("shared");
    MessageConsumer one = session.createSharedConsumer(topic, "name");
    MessageConsumer other = session.createSharedConsumer(topic, "name");
    MessageProducer producer = session.createProducer(topic);
    for (String body : List.of("a", "b")) producer.send(session.createTextMessage(body));
    List<String> seen = new ArrayList<>(List.of(text(one.receive(WAIT)), text(other.receive(WAIT))));
    Collections.sort(seen);
    one.close();
    other.close();
    producer.send(session.createTextMessage("lost"));
    return seen + " then " + text(session.createSharedConsumer(topic, "name").receive(300));
  }

  /** Without a client id: the name is everybody's. */
  private static Object sharedDurable(Connection ignored) throws Exception {
    try (Connection first = new JmsConnectionFactory(url).createConnection();
        Connection second = new JmsConnectionFactory(url).createConnection()) {
      Session session = session(first);
      Topic topic = session.createTopic("shared.durable");
      session.createSharedDurableConsumer(topic, "name").close();
      MessageProducer producer = session.createProducer(topic);
      producer.send(session.createTextMessage("kept"));
      second.start();
      MessageConsumer consumer = session(second).createSharedDurableConsumer(topic, "name");
      String seen = text(consumer.receive(WAIT));
      consumer.close();
      session.unsubscribe("name");
      producer.send(session.createTextMessage("lost"));
      return seen + " then " + text(session(second).createSharedDurableConsumer(topic, "name").receive(300));
    }
  }

  private static Object selector(Connection connection) throws Exception {
    Session session = session(connection);
    Queue queue = queue(connection, "selector");
    for (int number = 0; number < 4; number++) {
      Message message = session.createTextMessage("m" + number);
      message.setLongProperty("n", number);
      message.setStringProperty("colour", number % 2 == 0 ? "blue" : "red");
      session.createProducer(queue).send(message);
    }
    List<String> shown = new ArrayList<>();
    try (QueueBrowser browser = session.createBrowser(queue, "n BETWEEN 3 AND 4.5")) {
      for (Object each : Collections.list(browser.getEnumeration())) shown.add(text((Message) each));
    }
    MessageConsumer red = session.createConsumer(queue, "colour LIKE '_e%' AND JMSPriority = 4");
    List<String> seen = List.of(text(red.receive(WAIT)), text(red.receive(WAIT)));
    String more = text(red.receive(300));
    return seen + " of " + shown + " then " + more + ", " + text(session.createConsumer(queue).receive(WAIT)) + " left";
  }

  private static Object temporary(Connection connection) throws Exception {
    Session session = session(connection);
    TemporaryQueue inbox = session.createTemporaryQueue();
    MessageConsumer replies = session.createConsumer(inbox);
    TextMessage request = session.createTextMessage("ping");
    request.setJMSReplyTo(inbox);
    session.createProducer(queue(connection, "requests")).send(request);
    try (Connection other = new JmsConnectionFactory(url).createConnection()) {
      other.start();
      Session theirs = session(other);
      Message asked = theirs.createConsumer(queue(other, "requests")).receive(WAIT);
      MessageProducer producer = theirs.createProducer(null);
      producer.send(asked.getJMSReplyTo(), theirs.createTextMessage("pong"));
      String reply = text(replies.receive(WAIT));
      replies.close();
      inbox.delete();
      try {
        producer.send(asked.getJMSReplyTo(), theirs.createTextMessage("late"));
        return reply + ", then nothing refused";
      } catch (JMSException error) {
        return reply + ", then " + error.getClass().getSimpleName();
      }
    }
  }

  private static Object topic(Connection connection) throws Exception {
    Session session = session(connection);
    Topic topic = session.createTopic("news");
    MessageConsumer all = session.createConsumer(topic);
    MessageConsumer others = session.createConsumer(topic, null, true);
    session.createProducer(topic).send(session.createTextMessage("m"));
    return text(all.receive(WAIT)) + " and not local " + text(others.receive(300));
  }

  private static Object listener(Connection connection) throws Exception {
    Session session = session(connection);
    CountDownLatch all = new CountDownLatch(2_000);
    session.createConsumer(queue(connection, "many")).setMessageListener(message -> all.countDown());
    Session sending = session(connection);
    MessageProducer producer = sending.createProducer(queue(connection, "many"));
    producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
    for (int number = 0; number < 2_000; number++) producer.send(sending.createTextMessage("m"));
    return all.await(30, TimeUnit.SECONDS);
  }

  private static Object exhausted(Connection ignored) throws Exception {
    JmsConnectionFactory factory = new JmsConnectionFactory(url + "?jms.redeliveryPolicy.maxRedeliveries=1");
    try (Connection connection = factory.createConnection()) {
      connection.start();
      Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
      session.createProducer(queue(connection, "bad")).send(session.createTextMessage("poison"));
      session.commit();
      MessageConsumer consumer = session.createConsumer(queue(connection, "bad"));
      List<String> seen = new ArrayList<>();
      for (int turn = 0; turn < 2; turn++) {
        seen.add(count(consumer.receive(WAIT)));
        session.rollback();
      }
      seen.add(text(consumer.receive(300)));
      session.commit();
      Message letter = session.createConsumer(queue(connection, "ActiveMQ.DLQ")).receive(WAIT);
      session.commit();
      return seen + " " + text(letter) + " of " + letter.getStringProperty("originalDestination");
    }
  }

  private static Object delay(Connection connection) throws Exception {
    Session session = session(connection);
    MessageProducer producer = session.createProducer(queue(connection, "late"));
    producer.setDeliveryDelay(400);
    long began = System.nanoTime();
    producer.send(session.createTextMessage("late"));
    String body = text(session.createConsumer(queue(connection, "late")).receive(WAIT));
    return body + " " + ((System.nanoTime() - began) / 1_000_000 >= 350);
  }

  private static Object kinds(Connection connection) throws Exception {
    Session session = session(connection);
    MessageProducer producer = session.createProducer(queue(connection, "kinds"));
    BytesMessage bytes = session.createBytesMessage();
    bytes.writeBytes(new byte[] {0, -1});
    MapMessage map = session.createMapMessage();
    map.setString("s", "v");
    map.setShort("h", (short) 2);
    StreamMessage stream = session.createStreamMessage();
    stream.writeByte((byte) 1);
    stream.writeString("s");
    TextMessage text = session.createTextMessage("naïve");
    text.setLongProperty("long", 5);
    text.setJMSType("type");
    text.setJMSCorrelationID("corr");
    text.setJMSReplyTo(session.createTopic("replies"));
    for (Message each : List.of(text, bytes, map, stream, session.createMessage(),
        session.createObjectMessage(new ArrayList<>(List.of(1))))) producer.send(each);
    return "sent";
  }

  private static Object clientId(Connection connection) throws Exception {
    try (Connection second = new JmsConnectionFactory(url).createConnection()) {
      second.setClientID(connection.getClientID());
      return "taken twice";
    }
  }

  private static Session session(Connection connection) throws JMSException {
    return connection.createSession(Session.AUTO_ACKNOWLEDGE);
  }

  private static Queue queue(Connection connection, String name) throws JMSException {
    return session(connection).createQueue(name);
  }

  private static String text(Message message) throws JMSException {
    return message == null ? "nothing" : ((TextMessage) message).getText();
  }

  private static String count(Message message) throws JMSException {
    return text(message) + message.getIntProperty("JMSXDeliveryCount") + (message.getJMSRedelivered() ? "r" : "");
  }
}
