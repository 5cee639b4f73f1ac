package org.hornetq.core.protocol.stomp; // whose manager of the protocol is not public

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.hornetq.api.core.Interceptor;
import org.hornetq.api.core.SimpleString;
import org.hornetq.api.core.TransportConfiguration;
import org.hornetq.core.config.Configuration;
import org.hornetq.core.config.impl.ConfigurationImpl;
import org.hornetq.core.config.impl.FileConfiguration;
import org.hornetq.core.remoting.impl.netty.NettyAcceptorFactory;
import org.hornetq.core.security.Role;
import org.hornetq.core.server.HornetQServer;
import org.hornetq.core.server.JournalType;
import org.hornetq.core.server.impl.HornetQServerImpl;
import org.hornetq.core.settings.impl.AddressFullMessagePolicy;
import org.hornetq.core.settings.impl.AddressSettings;
import org.hornetq.spi.core.protocol.ProtocolManager;
import org.hornetq.spi.core.security.HornetQSecurityManagerImpl;

/**
 * A HornetQ broker that makes a queue when a STOMP client first names it. Arguments: HOST STOMP AMQP FOLDER, and a
 * hornetq-configuration.xml whose address settings, queues and a few values it has instead of its own.
 */
public class HornetQ {
    static final SimpleString DEAD_LETTERS = new SimpleString("jms.queue.DLQ");
    static final SimpleString EXPIRED = new SimpleString("jms.queue.ExpiryQueue");

    public static void main(String[] arguments) throws Exception {
        Configuration configuration = new ConfigurationImpl();
        configuration.setJournalType(JournalType.NIO);
        configuration.setBindingsDirectory(arguments[3] + "/bindings");
        configuration.setJournalDirectory(arguments[3] + "/journal");
        configuration.setLargeMessagesDirectory(arguments[3] + "/large-messages");
        configuration.setPagingDirectory(arguments[3] + "/paging");
        configuration.getAcceptorConfigurations().add(acceptor("STOMP", arguments[0], arguments[1]));
        configuration.getAcceptorConfigurations().add(acceptor("AMQP", arguments[0], arguments[2]));

        AddressSettings all = new AddressSettings();
        all.setDeadLetterAddress(DEAD_LETTERS);
        all.setMaxDeliveryAttempts(10);
        AddressSettings full = new AddressSettings();
        full.setMaxSizeBytes(65536);
        full.setAddressFullMessagePolicy(AddressFullMessagePolicy.FAIL);
        AddressSettings expiring = new AddressSettings();
        expiring.setExpiryAddress(EXPIRED);
        configuration.setMessageExpiryScanPeriod(500);
        configuration.getAddressesSettings().put("#", all);
        configuration.getAddressesSettings().put("jms.queue.expiring.#", expiring);
        configuration.getAddressesSettings().put("jms.queue.full.#", full);
        if (arguments.length > 4) {
            FileConfiguration file = new FileConfiguration("file:" + arguments[4]);
            file.start();
            configuration.setAddressesSettings(file.getAddressesSettings());
            configuration.setQueueConfigurations(file.getQueueConfigurations());
            configuration.setMessageExpiryScanPeriod(file.getMessageExpiryScanPeriod());
            configuration.setPersistDeliveryCountBeforeDelivery(file.isPersistDeliveryCountBeforeDelivery());
        }

        Role everything = new Role("everything", true, true, true, true, true, true, false);
        Role reader = new Role("restricted", false, true, true, true, true, true, false);
        Role writer = new Role("restricted", true, true, true, true, true, true, false);
        configuration.getSecurityRoles().put("#", Set.of(everything, reader));
        configuration.getSecurityRoles().put("jms.queue.allowed.#", Set.of(everything, writer));
        HornetQSecurityManagerImpl users = new HornetQSecurityManagerImpl();
        for (String[] user : new String[][] {{"guest", "everything"}, {"restricted", "restricted"}}) {
            users.addUser(user[0], user[0]);
            users.addRole(user[0], user[1]);
        }
        users.setDefaultUser("guest");

        HornetQServer server = new HornetQServerImpl(configuration, users);
        server.addProtocolManagerFactory(new QueueMakingStomp());
        server.start();
        make(server, DEAD_LETTERS.toString());
        make(server, EXPIRED.toString());
    }

    static TransportConfiguration acceptor(String protocol, String host, String port) {
        Map<String, Object> options = new HashMap<>();
        options.put("protocols", protocol);
        options.put("host", host);
        options.put("port", port);
        return new TransportConfiguration(NettyAcceptorFactory.class.getName(), options, protocol);
    }

    /** Such as a file makes them: one more queue, of the address' own name, would get a copy of each message. */
    static boolean hasQueues(HornetQServer server, SimpleString address) throws Exception {
        return !server.getPostOffice().getBindingsForAddress(address).getBindings().isEmpty();
    }

    static synchronized void make(HornetQServer server, String name) throws Exception {
        SimpleString queue = new SimpleString(name);
        boolean there = server.locateQueue(queue) != null || hasQueues(server, queue);
        if (name.startsWith("jms.queue.") && !there) {
            server.createQueue(queue, queue, null, true, false);
        }
    }

    static class QueueMakingStomp extends StompProtocolManagerFactory {
        @Override
        public ProtocolManager createProtocolManager(
                HornetQServer server, List<Interceptor> incoming, List<Interceptor> outgoing) {
            return new StompProtocolManager(server, incoming) {
                @Override
                public boolean destinationExists(String name) {
                    try {
                        make(server, name);
                    return !name.startsWith("jms.queue.") || hasQueues(server, new SimpleString(name));
                    } catch (Exception error) {
                        throw new IllegalStateException("the queue " + name + " cannot be made", error);
                    }
                }

                @Override
                public void createSubscription(
                        StompConnection connection, String id, String durable, String destination, String selector,
                        String mode, boolean noLocal) throws Exception {
                    make(server, destination);
                    super.createSubscription(connection, id, durable, destination, selector, mode, noLocal);
                }
            };
        }
    }
}
