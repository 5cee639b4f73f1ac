"""ActiveMQ Classic as the tests want it: the broker's own configuration file and command line.

Anonymous clients may do everything. What some tests need beyond a stock broker:

| destination | is |
|---|---|
| `individual.>` | dead-lettered to `DLQ.<name>` (individualDeadLetterStrategy) instead of `ActiveMQ.DLQ` |
| `full.>` | refuses a send as soon as it holds 64 KiB (sendFailIfNoSpace) |
| `allowed.>` | the only queues that the user `restricted` (password `restricted`) may write to; he may read all |
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from redelivery.testing.brokers.sources import MavenArchive
from redelivery.testing.brokers.spec import BrokerSpec, Image, Site

_CONFIGURATION = Template("""\
<beans xmlns="http://www.springframework.org/schema/beans" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:schemaLocation="http://www.springframework.org/schema/beans
    http://www.springframework.org/schema/beans/spring-beans.xsd
    http://activemq.apache.org/schema/core http://activemq.apache.org/schema/core/activemq-core.xsd">
  <bean class="org.springframework.beans.factory.config.PropertyPlaceholderConfigurer"/>
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="classic" useJmx="false" advisorySupport="false"
          schedulerSupport="true" dataDirectory="$${activemq.data}">
    <destinationPolicy><policyMap><policyEntries>
      <policyEntry queue="individual.>">
        <deadLetterStrategy>
          <individualDeadLetterStrategy queuePrefix="DLQ." useQueueForQueueMessages="true"/>
        </deadLetterStrategy>
      </policyEntry>
      <policyEntry queue="full.>" memoryLimit="64kb">
        <pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy>
      </policyEntry>
    </policyEntries></policyMap></destinationPolicy>
    <persistenceAdapter><kahaDB directory="$${activemq.data}/kahadb"/></persistenceAdapter>
    <plugins>
      <simpleAuthenticationPlugin anonymousAccessAllowed="true">
        <users>
          <authenticationUser username="admin" password="admin" groups="everything"/>
          <authenticationUser username="restricted" password="restricted" groups="restricted"/>
        </users>
      </simpleAuthenticationPlugin>
      <authorizationPlugin><map><authorizationMap><authorizationEntries>
        <authorizationEntry queue=">" read="anonymous,everything,restricted" write="anonymous,everything"
                            admin="anonymous,everything,restricted"/>
        <authorizationEntry topic=">" read="anonymous,everything,restricted" write="anonymous,everything,restricted"
                            admin="anonymous,everything,restricted"/>
        <authorizationEntry queue="allowed.>" write="restricted"/>
      </authorizationEntries></authorizationMap></map></authorizationPlugin>
    </plugins>
    <systemUsage><systemUsage sendFailIfNoSpace="true">
      <memoryUsage><memoryUsage percentOfJvmHeap="60"/></memoryUsage>
      <storeUsage><storeUsage limit="2 gb"/></storeUsage>
      <tempUsage><tempUsage limit="1 gb"/></tempUsage>
    </systemUsage></systemUsage>
    <transportConnectors>
      <transportConnector name="openwire" uri="tcp://$host:$openwire"/>
      <transportConnector name="amqp" uri="amqp://$host:$amqp"/>
      <transportConnector name="stomp" uri="stomp://$host:$stomp"/>
    </transportConnectors>
  </broker>
</beans>
""")


def configure(site: Site) -> None:
    """Write activemq.xml."""
    site.write("activemq.xml", _CONFIGURATION.substitute(site.ports, host=site.host))


def command(site: Site) -> Sequence[str]:
    """The command that starts Classic; its messages (KahaDB) and its log are in the site's data."""
    return [
        "java",
        "-Xmx2g",
        f"-Dactivemq.home={site.home}",
        f"-Dactivemq.base={site.home}",
        f"-Dactivemq.conf={site.folder}",
        f"-Dactivemq.data={site.data}",
        f"-Dlog4j2.configurationFile={site.home / 'conf' / 'log4j2.properties'}",
        "-jar",
        str(site.home / "bin" / "activemq.jar"),
        "start",
        f"xbean:file:{site.folder / 'activemq.xml'}",
    ]


SPEC = BrokerSpec(
    name="activemq",
    title="ActiveMQ Classic 5.18.3",
    tried=("5.18.3",),
    source=MavenArchive("org.apache.activemq:apache-activemq:5.18.3:tar.gz:bin", "apache-activemq-5.18.3"),
    image=Image("apache/activemq-classic:5.18.3", {"activemq.xml": "/opt/apache-activemq/conf/activemq.xml"}),
    ports={"stomp": 61613, "amqp": 5672, "openwire": 61616},
    configure=configure,
    command=command,
    ready=") started",  # after its name and id
)
