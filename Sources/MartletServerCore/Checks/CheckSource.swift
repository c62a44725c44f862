package import MartletProtocol

/// Compares what devices hold with what is stored.
///
/// Reads what is committed, on a connection of its own; confined to whoever holds it.
package protocol CheckSource: AnyObject {
    /// What a comparison finds, at a revision that is no older than any answered before the call.
    func compare(_ request: CheckRequest) throws(StorageFault) -> CheckAnswer
}
