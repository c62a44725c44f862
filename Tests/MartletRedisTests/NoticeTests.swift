import ConnectionKit
import RedisKit
import TestDatabases
import Testing

@testable import MartletRedis

@Suite("Notices of new revisions")
struct NoticeTests {
    @Test("are heard by others, also after Redis was killed", .timeLimit(.minutes(1)))
    func killedRedisAndNotices() async throws {
        let servers = try await DatabaseServers.start(["--redis"])
        let shelf = TestShelf(try RedisAddress(servers.redisURL))
        let publish: @Sendable (Int64) async throws -> Void = { revision in
            try await TestShelf.blocking {
                let notice = RevisionNotice(dataSet: shelf.dataSet, revision: revision)
                _ = try shelf.connection().command(notice.command)
            }
        }
        var heard: [String] = []
        for await event in RevisionNotices.events(
            shelf.address, of: [shelf.dataSet, "other"],
            options: RedisOptions(connecting: .seconds(30)))
        {
            switch event {
            case .listening:
                heard.append("listening")
                try await publish(heard.count == 1 ? 41 : 42)
            case .notice(let notice):
                #expect(notice.dataSet == shelf.dataSet)
                heard.append("\(notice.revision)")
                if notice.revision == 41 {
                    try await servers.order("redis kill")
                    try await servers.order("redis start")
                }
            case .lost:
                if heard.last != "lost" { heard.append("lost") }
            }
            if heard.last == "42" { break }
        }
        #expect(heard == ["listening", "41", "lost", "listening", "42"])
    }

    @Test(
        "what is no notice is none",
        arguments: [
            "", "-1", "0", "x", "1.5", "99999999999999999999", "１", "9999999999999999999999999",
        ])
    func rubbish(_ text: String) {
        let channel = RevisionNotice.channel(of: "abc")
        #expect(RevisionNotice(RedisMessage(channel: channel, payload: [UInt8](text.utf8))) == nil)
        let good = RevisionNotice(RedisMessage(channel: channel, payload: [UInt8]("12".utf8)))
        #expect(good == RevisionNotice(dataSet: "abc", revision: 12))
        #expect(RevisionNotice(RedisMessage(channel: "abc", payload: [UInt8]("12".utf8))) == nil)
    }
}
