/// The limits on what devices save and send, and on what a server keeps and answers.
///
/// The limits depend on each other, so that every set that a device accepts can be sent, and every
/// device can receive every set that a server accepts. `LimitRelation.all` lists the relations; a
/// server checks them when it starts.
package enum Limits {
    // MARK: - A request

    /// The bytes of a request's body as sent, compressed or plain.
    package static let requestBytes = 16 << 20
    /// The most bytes of an inflated body, and of an answer that a device accepts.
    package static let inflatedBytes = 64 << 20
    /// The most by which an inflated body may be larger than the compressed one, as a factor,
    /// beyond the first `inflationRatioFloor` bytes.
    package static let inflationRatio = 250
    /// The number of inflated bytes below which the ratio is not checked.
    package static let inflationRatioFloor = 1 << 20
    /// The most levels of nested arrays and objects.
    package static let depth = 64
    /// The change sets in one request.
    package static let changeSetsPerRequest = 10_000
    /// The bytes of change sets that a device puts into one request, before compression. At least
    /// one set is sent.
    package static let uploadBytes = 8 << 20
    /// The bytes of a request in addition to its change sets, even if compression gains nothing.
    package static let requestHeadBytes = 1 << 20

    // MARK: - A change set

    /// The records in one change set.
    package static let recordsPerChangeSet = 100_000
    /// The bytes of one encoded change set that a server reads.
    package static let changeSetBytes = 24 << 20
    /// The bytes of one encoded change set that a device saves; they fit into a request even if
    /// compression gains nothing. The device refuses a larger local transaction when it is written.
    package static let savedSetBytes = requestBytes - requestHeadBytes
    /// The UTF-8 bytes of a name: type, attribute, identifier, client id.
    package static let nameBytes = 128
    /// The UTF-8 bytes of a lineage, which may name views, and the row at which a difference goes on.
    package static let lineageBytes = 256
    /// The UTF-8 bytes of one text value in a change set.
    package static let textBytes = 16 << 20
    /// The greatest integer key. A server leaves out rows with greater keys, and assigns none
    /// itself.
    package static let greatestKey: Int64 = 1 << 62

    // MARK: - A server's data

    /// The bytes of one record, encoded with all its attributes. A server refuses a set that makes
    /// a larger record, and leaves out a larger one that another program wrote.
    package static let rowBytes = 24 << 20
    /// The bytes of attributes that an update may write before its whole record is measured.
    package static let unmeasuredBytes = 1_024
    /// The bytes of one encoded entry of the log. A server refuses a set with a larger entry, and
    /// cuts external writes into several entries.
    package static let entryBytes = 32 << 20

    // MARK: - An answer

    /// The bytes of change sets after which an answer is cut between two sets; it has at least one
    /// set. Also the bytes of true rows for all refused sets of one request; at least one row is
    /// sent.
    package static let answerBytes = 8 << 20
    /// The bytes of true rows that are read for all requests of one transaction.
    package static let truthBatchBytes = 64 << 20
    /// The most bytes of rows in part of a difference, which is cut between rows if there are more.
    package static let differenceBytes = rowBytes
    /// The bytes of one revision's deltas. If an entry or the rows of a revision have more, the
    /// server tells a listener to fetch them with `POST /sync`, which cuts them.
    package static let deltaBytes = inflatedBytes - requestHeadBytes
    /// The bytes of deltas at which a batch with several revisions ends.
    package static let batchBytes = inflatedBytes / 2
    /// The ranges in the check of one request.
    package static let checkRanges = 4_096
    /// The rows in the answer to a check. The device asks again for the rest.
    package static let checkRows = 2_000
    /// The bytes after which a check's answer takes no further row.
    package static let checkBytes = 1 << 20
    /// The records that may have changed since a check's revision. If there are more, nothing is
    /// compared.
    package static let checkLeftOut = 2_000
    /// The bytes of a snapshot's manifest.
    package static let manifestBytes = 1 << 20
}

/// A relation between `Limits` that the program relies on.
package struct LimitRelation: Sendable {
    /// A sentence that states the relation.
    package let rule: String
    package let holds: Bool

    /// The bytes by which an entry grows in the format for its author: the old ids of its records,
    /// and the set's identifier and number.
    package static let authorFormatBytes = Limits.recordsPerChangeSet * 36 + 8 * Limits.nameBytes

    /// All relations.
    package static let all = [
        LimitRelation(
            rule: "a set that a device saves fits a request, however little compression gains",
            holds: Limits.savedSetBytes + Limits.requestHeadBytes <= Limits.requestBytes),
        LimitRelation(
            rule: "a request that is not compressed is not longer than an inflated one may be",
            holds: Limits.requestBytes <= Limits.inflatedBytes),
        LimitRelation(
            rule: "a server reads every set that a device saves",
            holds: Limits.savedSetBytes <= Limits.changeSetBytes
                && Limits.uploadBytes <= Limits.savedSetBytes),
        LimitRelation(
            rule: "a text that a server reads fits a set, and a set's record may be kept",
            holds: Limits.textBytes <= Limits.changeSetBytes
                && Limits.changeSetBytes <= Limits.rowBytes),
        LimitRelation(
            rule: "an entry holds the greatest record",
            holds: Limits.rowBytes + Limits.requestHeadBytes <= Limits.entryBytes),
        LimitRelation(
            rule: "a device takes the greatest entry, in its author's form, beside a check's rows",
            holds: Limits.entryBytes + LimitRelation.authorFormatBytes + Limits.requestHeadBytes
                + Limits.checkBytes + Limits.rowBytes <= Limits.inflatedBytes),
        LimitRelation(
            rule: "a device takes part of a difference, also as deltas, in which escapes double",
            holds: 2 * Limits.differenceBytes + Limits.requestHeadBytes <= Limits.inflatedBytes
                && Limits.rowBytes <= Limits.differenceBytes
                && Limits.answerBytes <= Limits.differenceBytes),
        LimitRelation(
            rule: "a listener takes the deltas of one revision, and a batch of several",
            holds: Limits.deltaBytes + Limits.requestHeadBytes <= Limits.inflatedBytes
                && Limits.batchBytes <= Limits.deltaBytes
                && 2 * Limits.differenceBytes <= Limits.deltaBytes),
        LimitRelation(
            rule: "one transaction reads the true rows of several requests",
            holds: Limits.answerBytes + Limits.rowBytes <= Limits.truthBatchBytes),
    ]

    /// Stops the program if a relation does not hold, because the limits then contradict each
    /// other.
    package static func check() {
        for relation in all {
            precondition(relation.holds, "the limits contradict each other: \(relation.rule)")
        }
    }
}
