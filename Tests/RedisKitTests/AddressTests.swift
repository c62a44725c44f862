import RedisKit
import Testing

@Suite("Address of Redis")
struct AddressTests {
    @Test(
        "is read with what is left out",
        arguments: [
            ("redis://cache.example", "redis://cache.example:6379/0"),
            ("redis://127.0.0.1:7000", "redis://127.0.0.1:7000/0"),
            ("REDIS://ann:se%3Acret@cache:1/", "redis://cache:1/0"),
            ("redis://:secret@cache/15", "redis://cache:6379/15"),
            ("redis://[::1]:7000/2", "redis://::1:7000/2"),
        ])
    func readingRedisAddress(url: String, description: String) throws {
        let address = try RedisAddress(url)
        #expect(address.description == description)
        var dumped = ""
        dump(address, to: &dumped)
        #expect(!dumped.contains("cret"))
    }

    @Test(
        "is refused with a sentence, without what was in it",
        arguments: [
            "", "secret", "http://secret", "rediss://secret", "redis://", "redis://secret:0",
            "redis://secret:x", "redis://secret/x", "redis://secret/-1", "redis://a:%s3cret@b",
            "redis://secret?db=1", "redis://[::1]secret", "redis://:secret@",
        ])
    func malformedRedisAddress(url: String) throws {
        let error = #expect(throws: RedisError.self) { try RedisAddress(url) }
        #expect(error?.kind == .malformedAddress)
        #expect(error?.description.contains("secret") == false)
        #expect(error?.mayPass == false)
    }
}
