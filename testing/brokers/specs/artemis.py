"""ActiveMQ Artemis as the tests want it: what `artemis create` writes, on other ports, and a few rules.

Anonymous clients may do everything. Its store is the folder ``data`` of the instance.
What some tests need beyond a stock broker:

| address | is |
|---|---|
| `full.#` | refuses a send as soon as it holds 64 KiB (address-full-policy FAIL) |
| `allowed.#` | the only addresses that the user `restricted` (password `restricted`) may send to; he may read all |
| `activemq.management` | likewise, but the broker does what it is asked there for all others only |
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from redelivery.testing.brokers.sources import MavenArchive
from redelivery.testing.brokers.spec import BrokerSpec, Image, Site

_BROKER = Template("""\
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>artemis</name>
    <persistence-enabled>true</persistence-enabled>
    <journal-type>NIO</journal-type>
    <journal-datasync>true</journal-datasync>
    <journal-min-files>2</journal-min-files>
    <journal-pool-files>10</journal-pool-files>
    <max-redelivery-records>1</max-redelivery-records>
    <paging-directory>data/paging</paging-directory>
    <bindings-directory>data/bindings</bindings-directory>
    <journal-directory>data/journal</journal-directory>
    <large-messages-directory>data/large-messages</large-messages-directory>
    <max-disk-usage>100</max-disk-usage>
    <acceptors>
      <acceptor name="openwire">tcp://$host:$openwire?protocols=CORE,OPENWIRE;supportAdvisory=false</acceptor>
      <acceptor name="amqp">tcp://$host:$amqp?protocols=AMQP;amqpCredits=1000;amqpLowCredits=300;\
amqpMinLargeMessageSize=102400;amqpDuplicateDetection=true</acceptor>
      <acceptor name="stomp">tcp://$host:$stomp?protocols=STOMP</acceptor>
    </acceptors>
    <security-settings>
      $security
    </security-settings>
    <address-settings>
      <address-setting match="#">
        <dead-letter-address>DLQ</dead-letter-address>
        <expiry-address>ExpiryQueue</expiry-address>
        <redelivery-delay>0</redelivery-delay>
        <max-delivery-attempts>10</max-delivery-attempts>
        <max-size-bytes>-1</max-size-bytes>
        <address-full-policy>PAGE</address-full-policy>
        <auto-create-queues>true</auto-create-queues>
        <auto-create-addresses>true</auto-create-addresses>
        <auto-delete-queues>false</auto-delete-queues>
        <auto-delete-addresses>false</auto-delete-addresses>
      </address-setting>
      <address-setting match="full.#">
        <max-size-bytes>64K</max-size-bytes>
        <address-full-policy>FAIL</address-full-policy>
      </address-setting>
    </address-settings>
    <addresses>
      <address name="DLQ"><anycast><queue name="DLQ"/></anycast></address>
      <address name="ExpiryQueue"><anycast><queue name="ExpiryQueue"/></anycast></address>
    </addresses>
  </core>
</configuration>
""")

_BOOTSTRAP = Template("""\
<broker xmlns="http://activemq.apache.org/schema">
  <jaas-security domain="activemq"/>
  <server configuration="file:$folder/broker.xml"/>
  <web path="web" rootRedirectLocation="console">
    <binding name="artemis" uri="http://$host:$http"><app name="console" url="console" war="console.war"/></binding>
  </web>
</broker>
""")

# what `artemis create` writes, on any host
_JOLOKIA = """\
<restrict>
  <cors><allow-origin>*://localhost*</allow-origin><strict-checking/></cors>
</restrict>
"""

_MANAGEMENT = '<management-context xmlns="http://activemq.apache.org/schema"/>\n'

_LOGIN = """\
activemq {
  org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule sufficient
    org.apache.activemq.jaas.properties.user="artemis-users.properties"
    org.apache.activemq.jaas.properties.role="artemis-roles.properties";
  org.apache.activemq.artemis.spi.core.security.jaas.GuestLoginModule sufficient
    org.apache.activemq.jaas.guest.user="guest"
    org.apache.activemq.jaas.guest.role="everything"
    credentialsInvalidate=true;
};
"""

_LOGGING = """\
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
logger.server.name = org.apache.activemq.artemis.core.server
logger.server.level = INFO
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %-5level [%logger] %msg%n
"""

_PERMISSIONS = (
    "createNonDurableQueue",
    "deleteNonDurableQueue",
    "createDurableQueue",
    "deleteDurableQueue",
    "createAddress",
    "deleteAddress",
    "consume",
    "browse",
)


def _security(match: str, senders: str) -> str:
    entries = [f'<permission type="{each}" roles="everything,restricted"/>' for each in _PERMISSIONS]
    entries.append(f'<permission type="send" roles="{senders}"/><permission type="manage" roles="everything"/>')
    return f'<security-setting match="{match}">{"".join(entries)}</security-setting>'


def configure(site: Site) -> None:
    """Write what is in the folder ``etc`` of an Artemis instance."""
    both = "everything,restricted"
    security = _security("#", "everything") + _security("allowed.#", both) + _security("activemq.management", both)
    values = {**site.ports, "host": site.host, "folder": site.folder, "security": security}
    site.write("broker.xml", _BROKER.substitute(values))
    site.write("bootstrap.xml", _BOOTSTRAP.substitute(values))
    site.write("management.xml", _MANAGEMENT)
    site.write("jolokia-access.xml", _JOLOKIA)
    site.write("login.config", _LOGIN)
    site.write("log4j2.properties", _LOGGING)
    site.write("artemis-users.properties", "admin = admin\nrestricted = restricted\n")
    site.write("artemis-roles.properties", "everything = admin\nrestricted = restricted\n")


def command(site: Site) -> Sequence[str]:
    """The command that `artemis run` of an instance runs."""
    return [
        "java",
        "-Xmx1g",
        "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
        f"-Djava.security.auth.login.config={site.folder / 'login.config'}",
        f"-Dlog4j2.configurationFile={site.folder / 'log4j2.properties'}",
        "-Dhawtio.offline=true",
        "-Dhawtio.disableProxy=true",
        "-Dhawtio.realm=activemq",
        "-Dhawtio.roles=everything",
        "-Dhawtio.rolePrincipalClasses=org.apache.activemq.artemis.spi.core.security.jaas.RolePrincipal",
        f"-Djolokia.policyLocation=file:{site.folder / 'jolokia-access.xml'}",
        f"-Dartemis.home={site.home}",
        f"-Dartemis.instance={site.folder}",
        f"-Dartemis.instance.etc={site.folder}",
        "-cp",
        str(site.home / "lib" / "artemis-boot.jar"),
        "org.apache.activemq.artemis.boot.Artemis",
        "run",
    ]


_IN_IMAGE = "/var/lib/artemis-instance/etc-override"
SPEC = BrokerSpec(
    name="artemis",
    title="ActiveMQ Artemis 2.44.0",
    tried=("2.44.0",),
    source=MavenArchive("org.apache.activemq:apache-artemis:2.44.0:tar.gz:bin", "apache-artemis-2.44.0"),
    image=Image(
        "apache/activemq-artemis:2.44.0",
        {
            name: f"{_IN_IMAGE}/{name}"
            for name in ("broker.xml", "login.config", "artemis-users.properties", "artemis-roles.properties")
        },
    ),
    ports={"stomp": 61613, "amqp": 5672, "openwire": 61616, "http": 8161},
    configure=configure,
    command=command,
    ready="AMQ221007",
)
