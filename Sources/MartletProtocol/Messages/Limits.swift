/// Limits of the wire, checked before and while reading.
public enum Limits {
    /// Bytes of a request's body as sent.
    public static let requestBytes = 16 << 20
    /// Bytes of a body once inflated.
    public static let inflatedBytes = 64 << 20
    /// How many times larger than the compressed body the inflated one may be, beyond the first
    /// `inflationRatioFloor` bytes.
    public static let inflationRatio = 250
    /// Inflated bytes below which the ratio is not checked.
    public static let inflationRatioFloor = 1 << 20
    /// Nesting of arrays and objects.
    public static let depth = 64
    /// Change sets in one request.
    public static let changeSetsPerRequest = 10_000
    /// Records in one change set.
    public static let recordsPerChangeSet = 100_000
    /// Bytes of one change set; a local transaction that would need more is refused when written.
    public static let changeSetBytes = 24 << 20
    /// Bytes of change sets a device puts into one request, before compression; one set always
    /// goes.
    public static let uploadBytes = 8 << 20
    /// Bytes of change sets an answer carries before it is cut at a set boundary.
    public static let answerBytes = 8 << 20
    /// Ranges in the check of one request.
    public static let checkRanges = 4_096
    /// Rows a check's answer carries; the rest is asked for again.
    public static let checkRows = 2_000
    /// Records that may have changed since a check's revision, beyond which nothing is compared.
    public static let checkLeftOut = 2_000
    /// UTF-8 bytes of a name: type, attribute, identifier, client id.
    public static let nameBytes = 128
    /// UTF-8 bytes of one text value.
    public static let textBytes = 16 << 20
    /// Bytes of a snapshot's manifest.
    public static let manifestBytes = 1 << 20
}
