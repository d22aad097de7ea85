//! What the broker says of a delivery in the subject on which it is acknowledged.
//!
//! The client library reads it too, but from a message that holds a connection of its own: to make and drop one takes as
//! long as to decide on the message.

/// What the broker says of a delivery (ADR-15 of NATS).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeliveryInfo<'a> {
    /// The stream that keeps it.
    pub(crate) stream: &'a str,
    /// The consumer that is given it.
    pub(crate) consumer: &'a str,
    /// How often it was delivered, this time included.
    pub(crate) deliveries: u64,
    /// Its sequence in the stream.
    pub(crate) sequence: u64,
    /// When it was stored, in nanoseconds since the Unix epoch.
    pub(crate) stored_nanos: i128,
    /// How many messages wait behind it in its consumer.
    pub(crate) waiting: u64,
}

/// How subjects begin on which deliveries are acknowledged. A message with another reply subject is an answer of the broker.
pub(crate) const ACKNOWLEDGEMENTS: &str = "$JS.ACK.";

impl<'a> DeliveryInfo<'a> {
    /// From the subject on which a delivery is acknowledged; none where it is not such a subject.
    ///
    /// `<stream>.<consumer>.<deliveries>.<sequence>.<sequence in the consumer>.<time>.<waiting>` follows, in newer brokers after
    /// a domain and an account, and then with more behind.
    pub(crate) fn parse(subject: &'a str) -> Option<Self> {
        const TOKENS: usize = 7;
        let rest = subject.strip_prefix(ACKNOWLEDGEMENTS)?;
        let named = rest.split('.').count() > TOKENS;
        let mut tokens = rest.split('.').skip(if named { 2 } else { 0 });
        let (stream, consumer) = (tokens.next()?, tokens.next()?);
        let mut number = || tokens.next()?.parse::<u64>().ok();
        let (deliveries, sequence, _in_consumer, stored, waiting) =
            (number()?, number()?, number()?, number()?, number()?);
        Some(Self {
            stream,
            consumer,
            deliveries,
            sequence,
            stored_nanos: stored.into(),
            waiting,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_nothing_else() {
        let info = Some(DeliveryInfo {
            stream: "S",
            consumer: "inbox",
            deliveries: 2,
            sequence: 40,
            stored_nanos: 1_700_000_000_123_456_789,
            waiting: 7,
        });
        for (subject, expected) in [
            ("$JS.ACK.S.inbox.2.40.3.1700000000123456789.7", info),
            (
                "$JS.ACK._.AbCdEf.S.inbox.2.40.3.1700000000123456789.7",
                info,
            ),
            (
                "$JS.ACK.hub.AbCdEf.S.inbox.2.40.3.1700000000123456789.7.random",
                info,
            ),
            ("$JS.ACK.S.inbox.2.40.3.1700000000123456789", None),
            ("$JS.ACK.S.inbox.2.40.3.1700000000123456789.-7", None),
            ("$JS.ACK.S.inbox.two.40.3.1700000000123456789.7", None),
            ("$JS.ACK.", None),
            ("_INBOX.a.b", None),
        ] {
            assert_eq!(DeliveryInfo::parse(subject), expected, "{subject}");
        }
    }
}
