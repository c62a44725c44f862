internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import MartletStore
internal import SQLiteKit
internal import SmallWorlds

extension Operation {
    // MARK: - Saves

    static let saving: [Operation] = [
        Operation("one save of many new records") { world, count in
            let device = try world.device()
            try world.count("save") {
                try device.write { context in
                    for number in 0..<count {
                        try context.insert("notes", ["body": "n"], id: "n\(number)")
                    }
                }
            }
            try world.countSync(device)
            let other = try world.device()
            try world.countSync(other, "fetching")
        },
        Operation("many saves of one record", size: 500) { world, count in
            let device = try world.author(teams: 1)
            try world.count("save") {
                try world.save(device, 0..<count) {
                    try $0.update("teams", .integer(1), ["name": .text("name \($1)")])
                }
            }
            try world.countSync(device)
            let other = try world.device()
            try world.countSync(other, "fetching")
        },
        // So many that sets confirmed earlier and sets that wait outweigh those of one run.
        Operation("many saves of many records", size: 500) { world, count in
            let device = try world.author(teams: count)
            try world.count("save") {
                try world.save(device, 0..<count) {
                    try $0.update("teams", .integer(Int64($1 + 1)), ["name": .text("name \($1)")])
                }
            }
            try world.countSync(device)
        },
        Operation("many saves of new records that refer to each other in a row") { world, count in
            let device = try world.device()
            var last: SQLValue = .null
            try world.count("save") {
                try world.save(device, 0..<count) { context, number in
                    let id = try context.insert(
                        "teams", ["name": .text("t\(number)"), "parent_id": last])
                    last = id.sqlValue
                }
            }
            try world.countSync(device)
            try world.countSync(world.device(), "fetching")
        },
        Operation("one save of new records that refer to each other in a row") { world, count in
            let device = try world.device()
            try world.count("save") {
                try device.write { context in
                    var last: SQLValue = .null
                    for number in 0..<count {
                        last = try context.insert(
                            "teams", ["name": .text("t\(number)"), "parent_id": last]
                        ).sqlValue
                    }
                }
            }
            try world.countSync(device)
            try world.countSync(world.device(), "fetching")
        },
        Operation("many saves that delete a record each") { world, count in
            let device = try world.author(teams: count)
            try world.count("save") {
                try world.save(device, 0..<count) {
                    _ = try $0.delete("teams", .integer(Int64($1 + 1)))
                }
            }
            try world.countSync(device)
        },
        Operation("one save that deletes records with others tied to them") { world, count in
            let device = try world.author(teams: count, players: count)
            try world.count("save") {
                try device.write { context in
                    for number in 0..<count {
                        _ = try context.delete("teams", .integer(Int64(number + 1)))
                    }
                }
            }
            try world.countSync(device)
        },
        Operation("one save that deletes a record with many tied to it") { world, count in
            let device = try world.author(teams: 1, players: count)
            try world.count("save") { _ = try device.write { try $0.delete("teams", .integer(1)) } }
            try world.countSync(device)
        },
        Operation("many saves beside one that deletes") { world, count in
            let device = try world.author(teams: count + 1)
            try world.save(device, 0..<count) {
                try $0.update("teams", .integer(Int64($1 + 1)), ["city": "Rome"])
            }
            _ = try device.write { try $0.delete("teams", .integer(Int64(count + 1))) }
            try world.countSync(device)
        },
        Operation("many saves that exchange unique values") { world, count in
            let device = try world.author(teams: count + 1)
            try world.count("save") {
                try world.save(device, 0..<count) { context, number in
                    let (first, second) = (Int64(number + 1), Int64(number + 2))
                    try context.update("teams", .integer(first), ["rank": .null])
                    try context.update("teams", .integer(second), ["rank": .integer(0)])
                    try context.update(
                        "teams", .integer(first), ["rank": .integer(Int64(number + 1))])
                }
            }
            try world.countSync(device)
        },
        Operation("one save in which many records hand a unique value on") { world, count in
            let device = try world.author(teams: count)
            try world.count("save") {
                try device.write { context in
                    for number in 1...count {
                        try context.update("teams", .integer(Int64(number)), ["rank": .null])
                    }
                    for number in 1...count {
                        try context.update(
                            "teams", .integer(Int64(number)),
                            ["rank": .integer(Int64(number % count))])
                    }
                }
            }
            let other = try world.device()
            try world.sync(other)
            try world.countSync(device)
            try world.countSync(other, "fetching")
        },
    ]

    // MARK: - Exchanges

    static let exchanging: [Operation] = [
        Operation("an exchange after each of many saves") { world, count in
            let device = try world.author(teams: 1)
            for number in 0..<count {
                try world.count("save") {
                    try device.write {
                        try $0.update("teams", .integer(1), ["name": .text("\(number)")])
                    }
                }
                try world.countSync(device)
            }
        },
        Operation("others' changes to other records, under a queue", size: 50) { world, count in
            let author = try world.author(teams: 2 * count)
            let device = try world.device()
            try world.sync(device)
            try world.save(author, 0..<count) {
                try $0.update("teams", .integer(Int64($1 + 1)), ["city": "Rome"])
            }
            try world.sync(author)
            try world.save(device, 0..<count) {
                try $0.update("teams", .integer(Int64($1 + count + 1)), ["city": "Bern"])
            }
            try world.countSync(device)
        },
        Operation("others' deletes, under a queue", size: 50) { world, count in
            let author = try world.author(teams: 2 * count)
            let device = try world.device()
            try world.sync(device)
            try world.save(author, 0..<count) {
                _ = try $0.delete("teams", .integer(Int64($1 + 1)))
            }
            try world.sync(author)
            try world.save(device, 0..<count) {
                try $0.update("teams", .integer(Int64($1 + count + 1)), ["city": "Bern"])
            }
            try world.countSync(device)
        },
        Operation("a stream of many changes, under a queue", size: 50) { world, count in
            let author = try world.author(teams: 2 * count)
            let device = try world.device()
            try world.sync(device)
            try world.save(device, 0..<count) {
                try $0.update("teams", .integer(Int64($1 + count + 1)), ["city": "Bern"])
            }
            try world.save(author, 0..<count) {
                try $0.update("teams", .integer(Int64($1 + 1)), ["city": "Rome"])
            }
            try world.sync(author)
            try world.follow(device)
        },
        Operation("a stream of one change at a time") { world, count in
            let author = try world.author(teams: count)
            let device = try world.device()
            try world.sync(device)
            for number in 0..<count {
                try author.write {
                    try $0.update("teams", .integer(Int64(number + 1)), ["city": "Rome"])
                }
                try world.sync(author)
                try world.follow(device)
            }
        },
        Operation("a difference over many records, under a queue", size: 300) { world, count in
            let author = try world.author(teams: 2 * count)
            let device = try world.device()
            try world.sync(device)
            try author.write { context in
                for number in 0..<count {
                    try context.update("teams", .integer(Int64(number + 1)), ["city": "Rome"])
                }
            }
            try world.sync(author)
            world.server.compact()
            try world.save(device, 0..<count / 10) {
                try $0.update("teams", .integer(Int64($1 + count + 1)), ["city": "Bern"])
            }
            try world.countSync(device)
        },
        Operation("a long queue beside large answers", size: 40) { world, count in
            let author = try world.author(teams: 2 * count)
            let device = try world.device()
            try world.sync(device)
            try world.save(author, 0..<count) { context, _ in
                for _ in 0..<40 { try context.insert("players", ["name": "P"]) }
            }
            try world.sync(author)
            try world.save(device, 0..<count) {
                try $0.update("teams", .integer(Int64($1 + 1)), ["city": "Bern"])
            }
            _ = try device.write { try $0.delete("teams", .integer(Int64(count + 1))) }
            try world.countSync(device)
        },
        Operation("many temporary ids that become permanent") { world, count in
            let device = try world.device()
            try world.save(device, 0..<count) { context, number in
                let team = try context.insert("teams", ["name": .text("t\(number)")])
                try context.insert("players", ["team_id": team.sqlValue, "name": "P"])
            }
            try world.save(device, 0..<count) {
                try $0.update("teams", .integer(Int64(-2 - 2 * $1)), ["city": "Rome"])
            }
            try world.countSync(device)
            try world.count("save by temporary id") {
                try world.save(device, 0..<count) {
                    try $0.update("teams", .integer(Int64(-2 - 2 * $1)), ["city": "Oslo"])
                }
            }
        },
    ]

    // MARK: - Refusals

    static let refusing: [Operation] = [
        Operation("many sets that are refused, decided one by one") { world, count in
            let device = try world.conflicts(count)
            try world.countSync(device)
            guard try device.store.parkedCount == count else { throw SmallWorldError.endless }
            let parked = try world.count("list") { try device.store.parked() }
            try world.count("retry") {
                for set in parked.prefix(count / 2) {
                    try device.store.retry(set.identifier, now: 1_000)
                }
            }
            try world.count("drop") {
                for set in parked.dropFirst(count / 2) {
                    try device.store.drop(set.identifier, now: 1_000)
                }
            }
            try world.countSync(device, "exchange after")
            _ = try world.count("receipts") { try device.store.receipts(limit: count) }
        },
        Operation("many sets made on a refused one") { world, count in
            let device = try world.conflicts(1)
            try world.save(device, 0..<count) {
                try $0.update("teams", .integer(1), ["city": .text("c\($1)")])
            }
            try world.countSync(device)
        },
        Operation("saves while many sets are parked") { world, count in
            let device = try world.conflicts(count)
            try world.sync(device)
            try world.count("save") {
                try world.save(device, 0..<count) { context, _ in
                    try context.insert("players", ["name": "P"])
                }
            }
            try world.countSync(device)
        },
        Operation("a queue with a refused set at every tenth place") { world, count in
            let author = try world.author(teams: count)
            let device = try world.device()
            try world.sync(device)
            try world.save(author, 0..<count / 10) {
                try $0.update("teams", .integer(Int64(10 * $1 + 1)), ["city": "Rome"])
            }
            try world.sync(author)
            try world.save(device, 0..<count) {
                try $0.update("teams", .integer(Int64($1 + 1)), ["city": "Bern"])
            }
            try world.countSync(device)
        },
    ]
}

extension GrowingWorld {
    /// A device whose queue has so many sets that the server will refuse, each of another record.
    func conflicts(_ count: Int) throws -> SmallDevice {
        let author = try author(teams: count)
        let device = try device()
        try sync(device)
        try author.write { context in
            for number in 1...count {
                try context.update("teams", .integer(Int64(number)), ["city": "Rome"])
            }
        }
        try sync(author)
        try save(device, 0..<count) {
            try $0.update("teams", .integer(Int64($1 + 1)), ["city": "Bern"])
        }
        return device
    }

    /// Brings a device up to date by batches of the stream, and counts that.
    /// - Parameter otherwise: What to do where an exchange has to bring it.
    func follow(
        _ device: SmallDevice,
        otherwise: (SmallDevice) throws -> Void = { _ in throw SmallWorldError.closed }
    ) throws {
        while true {
            let store = try device.store
            var request = DeltaRequest(
                principal: Principal(name: "staff"), since: try store.revision)
            request.clientID = try store.clientID
            let made = try count("making a batch") { try node.feed.deltas(request) }
            guard case .batch(let bytes) = made else { return try otherwise(device) }
            if bytes.isEmpty { return }
            let isTaken = try count("taking a batch") {
                let batch = try SyncCoder.decodeDeltaBatch(bytes.json)
                guard case .applied = try store.apply(batch, now: 1_000) else { return false }
                return true
            }
            guard isTaken else { return try otherwise(device) }
        }
    }
}
