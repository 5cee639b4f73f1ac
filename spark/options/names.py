"""The names that people type for an option, and what to say of a name that is none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from redelivery.model.suggestions import nearest
from redelivery.spark.options.table import READ, READ_STREAM, WRITE, Option, options_of

_URL: Final = "url, such as stomp://host:61613 or amqp://host:5672"
_SOURCE_ACKNOWLEDGES: Final = "leave it out: the source acknowledges a message when its row is durable in walLocation"
_OWN_CONNECTIONS: Final = "leave it out: each process of Spark makes a connection of its own, with an id of its own"
_NO_OFFSETS: Final = "leave it out: a queue has no offsets; a query goes on where its checkpoint and walLocation are"
_A_TOPIC: Final = "destination with 'topic://NAME', and subscription: a name for the durable subscription that keeps it"
_SEVERAL_TOPICS: Final = (
    "destination with a pattern such as 'topic://news.*', where the broker has them, and subscription"
)
_STAYS: Final = "leave it out: a queue or subscription stays when a query ends; session.unsubscribe(name) removes one"
_NO_CLOUD: Final = (
    "username and password to log in at the broker; storageOptions has the credentials of a walLocation in a cloud"
)
_PUSHED: Final = "leave it out: the broker pushes messages; prefetch says how many may be on their way"
_OWN_SCHEMA: Final = "leave it out: the columns are always the same; from_json(string(body), …) reads a body of JSON"
_A_BINDING: Final = "destination with a queue, which the broker binds to the exchange"
_ALL_COLUMNS: Final = "leave it out: every row has all columns, so select those that you want after load()"

# Names without case, dots, dashes and underscores; an option's name is shown, any other text is the advice itself.
_SYNONYMS: Final[Mapping[str, str]] = {
    _URL: (
        "broker brokers brokerurl brokeruri uri host hosts hostname port server address servers connection "
        "connectionfactory connectionstring bootstrapservers endpoint jmsurl kafkabootstrapservers serviceurl "
        "adminurl providerurl brokerhost brokerport addresses jmsproviderurl jndi javanamingproviderurl "
        "initialcontextfactory connectionfactoryname javanamingfactoryinitial messageconsumerfactory "
        "kinesisendpointurl eventhubsconnectionstring"
    ),
    "the path of url: amqp://host/name": "vhost virtualhost amqpvhost",
    "the scheme of url: stomp+ssl://host:61614 or amqps://host:5671": "ssl tls usessl usetls sslenabled",
    "tlsCa": (
        "ca cafile cacert cacerts cabundle truststore truststorelocation sslca sslcalocation ssltruststorelocation "
        "kafkassltruststorelocation tlscafile rootca"
    ),
    "tlsCert": (
        "cert certfile certificate clientcert keystore keystorelocation sslcert tlscertfile sslkeystorelocation "
        "kafkasslkeystorelocation sslcertificatelocation"
    ),
    "tlsKey": "keyfile clientkey privatekey sslkey tlskeyfile sslkeylocation",
    "tlsKey with a key that has no pass phrase": (
        "keypassword sslkeypassword kafkasslkeypassword keystorepassword truststorepassword"
    ),
    "passwordFile": "secretfile passfile credentialsfile credentials passwordpath",
    "passwordEnv": "secretenv passwordvariable passwordfromenv envpassword",
    "password with the value: dbutils.secrets.get(…), spark.conf.get(…); or passwordFile, passwordEnv": (
        "passwordconf passwordsecret secretscope secretkey scope servicecredential"
    ),
    "leave it out: over TLS the broker's name is always verified, by the system's certificates or tlsCa": (
        "verifyhostname sslverify checkhostname sslendpointidentificationalgorithm insecure"
    ),
    "the scheme of url: stomp://, stomp+ssl://, amqp:// or amqps://": "protocol transport scheme",
    "dialect": "brokertype provider vendor product",
    "destination": (
        "queue queuename assign streamname topicpartition streamarn eventhubname destinationname destinationtype from "
        "to channel routingkey jmsdestination"
    ),
    _A_BINDING: "exchange exchangename exchangenames exchangetype routingkeys bindingkey",
    _NO_CLOUD: (
        "region awsaccesskey awssecretkey awssessiontoken rolearn roleexternalid rolesessionname servicecredential "
        "projectid clientemail privatekey privatekeyid serviceaccount token oauth saslmechanism authmechanism "
        "kafkasaslmechanism kafkasasljaasconfig kafkasecurityprotocol pulsarclientauthpluginclassname "
        "pulsarclientauthparams"
    ),
    _PUSHED: (
        "maxfetchrate minfetchperiod maxfetchperiod maxfetchduration avgtimebetweenreads shardspertask "
        "shardfetchinterval coalescethresholdblocksize"
    ),
    _OWN_SCHEMA: "schema inferschema format charset encoding header multiline",
    "destinations": "queues queuenames destinationnames destinationlist",
    _A_TOPIC: "topic topicname topicid subscribe",
    _SEVERAL_TOPICS: "topics topicspattern subscribepattern",
    "subscription": (
        "subscriptionid subscriptionname durablesubscriptionname durablesubscription durablesubscribername "
        "predefinedsubscription subscriptionprefix"
    ),
    "shared": "sharedsubscription subscriptionshared subscriptiontype",
    "username": "login usr principal userid jmsusername",
    "password": "pass passwd pwd passcode secret jmspassword",
    "selector": "messageselector filter where query condition",
    "walLocation": "wal walpath waldir walfolder log loglocation segments segmentlocation",
    "maxMessagesPerBatch": (
        "maxrowspertrigger maxfilespertrigger maxmessages maxrecords maxrows batchsize maxbatchsize "
        "maxeventspertrigger maxrecordsperpartition maxmessagesperpartition maxmessagespertrigger maxrecordsperbatch "
        "maxoffsets limit maxrowsperbatch maxpollrecords"
    ),
    "maxBytesPerBatch": "maxbytespertrigger maxbytes maxbatchbytes",
    "numPartitions": "partitions minpartitions parallelism numtasks",
    "lanes": (
        "numfetchpartitions maxfetchparallelism threads consumers concurrency concurrentconsumers "
        "maxconcurrentconsumers levelparallelism receivers"
    ),
    "prefetch": (
        "fetchbuffersize maxfetchrecords maxrecordsperfetch maxinflight fairness prefetchsize prefetchcount "
        "queueprefetch prefetchpolicy consumerwindowsize"
    ),
    "receiveTimeout": (
        "timeout receivertimeout deliverytimeout polltimeout polltimeoutms kafkaconsumerpolltimeoutms readtimeout"
    ),
    "maxReconnectTime": (
        "connecttimeout connectiontimeout reconnect requesttimeout retrytimeout operationtimeout autoreconnect "
        "automaticrecovery networkrecoveryinterval topologyrecoveryenabled retryinterval fetchoffsetnumretries "
        "fetchoffsetretryintervalms"
    ),
    "dedupe": "usescorrelationid deduplicate idempotent",
    "deadLetterQueue": "dlq deadletter deadletteraddress deadletterqueuename deadletterstrategy deadletterstrategies",
    "application": "app appname applicationname",
    "leave it out: each dead letter that the source sends has one": "passport",
    "maxRedeliveries": "maximumredeliveries maxretries retries maxattempts redeliverypolicy redeliverypolicies",
    "redeliveryDelay": "initialredeliverydelay retrydelay backoff",
    "badMessages": "mode onerror errorpolicy columnnameofcorruptrecord",
    "persistent": "deliverymode persistence durable",
    "ttl": "timetolive expiration expires",
    "propertiesType": "properties headers headertype",
    _SOURCE_ACKNOWLEDGES: (
        "ackmode acknowledgemode acknowledgementmode autoack acktype qos transacted sessiontransacted"
    ),
    "clientId": "jmsclientid",
    _OWN_CONNECTIONS: (
        "consumername consumernameprefix consumermode consumerrefreshinterval registerconsumertimeoutinterval "
        "eventhubsconsumergroup groupid groupidprefix kafkagroupid consumergroup group"
    ),
    _NO_OFFSETS: (
        "startingoffsets endingoffsets startingoffset startingtimestamp startingoffsetsbytimestamp startingposition "
        "initialposition offset endingtimestamp startingtime endingtime startingoffsetsbytimestampstrategy "
        "usedeprecatedoffsetfetching eventhubsstartingposition"
    ),
    "minMessagesPerBatch": "minrowspertrigger minrows minmessages minrecords minbatchsize",
    "maxTriggerDelay": "maxdelay maxbatchdelay maxwait maxwaittime",
    _STAYS: "deletesubscriptiononstreamstop autodelete",
    "leave it out: the source redelivers in order": "nonblockingredelivery",
    "leave it out: what goes wrong ends the query, which says why": "exceptionlistener",
    "leave it out: a query is observed by Spark's own StreamingQueryListener": "observer listener",
    "leave it out: what a task sends once, and on which brokers, stands in docs/spark/messages.md": "deduplicatesends",
    "leave it out: the source looks after its connections itself": (
        "heartbeat keepalive closetimeout start requestedheartbeat requestedchannelmax requestedframemax"
    ),
    "destination queue://orders?declare=false": "declare passive autocreate",
    "leave it out: the source asks no broker's management; redelivery doctor does": "management managementurl",
    "leave it out: Spark ends its processes itself": "interrupts",
    "maxRedeliveries, redeliveryDelay and deadLetterQueue say of one source what a file says of a broker": (
        "policies brokerfile config"
    ),
    "columns": "fields select includecolumns requiredcolumns",
    "includeProperties": "includeheaders includeattributes",
    _ALL_COLUMNS: "includetimestamp",
    "it belongs to the query, not to the source: df.writeStream.option('checkpointLocation', …)": (
        "checkpointlocation checkpoint checkpointdir"
    ),
}
_OTHER_CLIENTS: Final = ("kafka.", "pulsar.", "eventhubs.", "kinesis.", "pubsub.", "x-")
_BY_NAME: Final = {synonym: right for right, names in _SYNONYMS.items() for synonym in names.split()}


def unknown_name(name: str, where: str) -> str:
    """The text about a name that is not an option of ``where``: it gives the right name, if there is one."""
    here = {_plain(each): each for option in options_of(where).values() for each in _names(option)}
    said = f"{name!r} is not an option of {where}"
    plain = _plain(name)
    if plain in here:  # other dashes
        return f"{said}: write {here[plain]}"
    advice = _BY_NAME.get(plain)
    if advice is not None and _fits(advice, where):
        return f"{said}: {advice if advice.startswith(('leave', 'it ')) else f'use {advice}'}"
    for other in (READ_STREAM, READ, WRITE):
        if advice is not None and advice in options_of(other):
            return f"{said}; use {advice}, of {other}, if that is meant"
        if plain in {_plain(each) for option in options_of(other).values() for each in _names(option)}:
            hint = "add walLocation if that is meant" if other == READ_STREAM and where == READ else "leave it out"
            return f"{said}, but of {other}: {hint}"
    if name.lower().startswith(_OTHER_CLIENTS):
        return f"{said}: leave it out, it is for another system's client"
    near = nearest(name, here.values())
    if near:
        return f"{said}; did you mean {near}?"
    near = nearest(name, options_of(READ_STREAM)) if where == READ else None
    if near:
        return f"{said}; did you mean {near}, of readStream? A stream needs walLocation"
    return f"{said}; docs/spark/options.md has a table of those that are"


def _names(option: Option) -> list[str]:
    return [each for each in (option.name, option.alias) if each]


def _fits(advice: str, where: str) -> bool:
    """Check that it is advice, or an option that ``where`` has."""
    return " " in advice or advice in options_of(where)


def _plain(name: str) -> str:
    return re.sub(r"[\s._-]", "", name).lower()
