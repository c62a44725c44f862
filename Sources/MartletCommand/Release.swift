import MartletModel
import MartletProtocol

/// The version of this release.
enum Release {
    static let version = "0.1.0"
    static var wire: String { String(WireVersion.current) }
}
