internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletStore
internal import SQLiteFaults

/// A server with teams and players, a device with work in its queue, and another one that wrote
/// meanwhile: what most of the sweeps begin with.
package final class SweptTeam {
    package let world: SmallWorld
    package let mine: SmallDevice
    package let other: SmallDevice

    package init(_ name: String) throws {
        world = try SmallWorld(DiskName.next("team-\(name)"))
        (mine, other) = (try world.device(), try world.device())
        try other.write { context in
            for number in Int64(1)...4 {
                let team = try context.insert("teams", ["name": .text("Team \(number)")])
                try context.insert(
                    "players", ["team_id": team.sqlValue, "name": "P", "shirt": .integer(number)])
            }
            try context.insert("notes", ["body": "Note"], id: "n1")
        }
        try other.sync(with: world.server)
        try mine.sync(with: world.server)
    }

    /// New records that refer to each other, an edit, a delete that reaches others, and two edits
    /// that the server will refuse.
    package func queue() throws {
        try mine.write { context in
            let team = try context.insert("teams", ["name": "Mine"])
            try context.insert("players", ["team_id": team.sqlValue, "name": "Ada", "shirt": 9])
        }
        for number in Int64(2)...3 {
            try mine.write { try $0.update("teams", .integer(number), ["city": "Rome"]) }
        }
        try mine.write { try $0.update("notes", .text("n1"), ["body": "Changed"]) }
        try mine.write { try $0.delete("teams", .integer(4)) }
    }

    /// The other one changes what the queue changes, and more, and is first.
    package func overtake() throws {
        for number in Int64(2)...3 {
            try other.write { try $0.update("teams", .integer(number), ["city": "Bonn"]) }
        }
        try other.write { context in
            for number in Int64(5)...8 {
                try context.insert(
                    "players", ["team_id": 1, "name": "Q", "shirt": .integer(number)])
            }
        }
        try other.sync(with: world.server)
    }

    /// Changes more, until the server no longer has the entries of all this.
    package func overtakeMore() throws {
        try other.write { context in
            for number in Int64(1)...12 {
                try context.insert("notes", ["body": "N"], id: "other-\(number)")
            }
            try context.update("players", .integer(1), ["name": "Renamed"])
        }
        try other.sync(with: world.server)
        world.server.compact()
    }

    /// The files as they are, with what is committed and not yet in its place.
    package var deviceImages: DiskImages { [mine.disk.files, world.server.disk.files] }
    package var serverImages: DiskImages {
        [world.server.disk.files, mine.disk.files, other.disk.files]
    }
}

extension SweptScenario {
    /// An exchange: sets go out, two are refused, others' changes come in slices.
    package static func exchange() throws -> SweptScenario {
        let team = try SweptTeam("exchange")
        try team.queue()
        try team.overtake()
        return SweptScenario("exchange", team.deviceImages) { images, life in
            try SweptDevice(images, life: life) { try $0.sync() }
        }
    }

    /// Saves, and an exchange, on a device's file whose last owner was killed.
    package static func restart() throws -> SweptScenario {
        let team = try SweptTeam("restart")
        try team.queue()
        return SweptScenario("restart", team.deviceImages) { images, life in
            try SweptDevice(images, life: life) { work in
                while let count = try work.savedNotes, count < 3 {
                    try work.device.write { context in
                        try context.insert("notes", ["body": "Saved"], id: "saved-\(count)")
                        try context.update("teams", .integer(1), ["city": .text("City \(count)")])
                    }
                    work.acknowledge()
                }
                try work.sync()
            }
        }
    }

    /// Two devices exchange with a server that was killed before: sets, refusals, a cascade.
    package static func serverCommit() throws -> SweptScenario {
        let team = try SweptTeam("commit")
        try team.overtake()
        try team.queue()
        try team.other.write { try $0.update("teams", .integer(1), ["city": "Pisa"]) }
        return SweptScenario("server commit", team.serverImages) { images, life in
            try SweptServer(images, life: life) { work in
                for device in work.devices { try work.sync(device) }
            }
        }
    }
}

extension SweptDevice {
    /// How many of the notes are there that a restarted device saves.
    fileprivate var savedNotes: Int64? {
        get throws {
            let rows = try device.store.local.rows(
                "SELECT count(*) FROM notes WHERE id LIKE 'saved-%'")
            guard case .integer(let count)? = rows.first?.values.first else { return nil }
            return count
        }
    }
}
