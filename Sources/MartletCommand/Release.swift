import MartletModel
import MartletProtocol

/// Which release this is.
enum Release {
    static let version = "0.1.0"
    static var wire: String { String(WireVersion.current) }
}
