import MartletStore
import SQLiteFaults
import SmallWorlds

@testable import Martlet
@testable import MartletDevice

/// Versions of an app's tables, run on a device's file on a disk that fails.
final class SweptMigration: SweptWork {
    private let file: SyncedFile
    private(set) var acknowledged = 0
    var whenAcknowledged: () -> Void = {}

    /// - Parameter images: The device's disk.
    init(_ images: DiskImages, life: Int) {
        file = SyncedFile("swept", image: images[0], life: life)
    }

    var disk: FaultDisk { file.disk }
    var images: DiskImages { [disk.files] }

    func act() throws {
        guard file.store == nil else { return }
        try file.open()
        guard !disk.isDown else { return }
        acknowledged += 1
        whenAcknowledged()
    }

    func close(life: Int) { file.close() }

    func state(on disk: FaultDisk) throws -> String { try SyncedFile.content(on: disk) }

    func check() throws -> String {
        try act()
        return try state(on: FaultDisk("look", disk.files))
    }
}
