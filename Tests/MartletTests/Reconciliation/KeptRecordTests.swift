import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("A record that the server's trigger keeps from deletion")
struct KeptRecordTests {
    private static let script =
        DeviceFixture.script + """

            CREATE TRIGGER kept BEFORE DELETE ON teams BEGIN
                UPDATE teams SET city = 'kept' WHERE id = OLD.id;
                SELECT RAISE(IGNORE);
            END;
            """

    @Test("comes back to the device that deleted it; what went along with it is gone")
    func back() async throws {
        let server = try CheckServer(script: Self.script)
        try await server.send(
            """
            {"types":["teams","players"],"teams":{"create":[-1,-2],"update":[],"delete":[],
            "attributes":{"-1":{"name":"Eagles"},"-2":{"name":"Owls"}}},
            "players":{"create":[-1],"update":[],"delete":[],
            "attributes":{"-1":{"name":"Ann","team_id":-1}}}}
            """)
        let device = try await TestClient(server)
        try await device.client.sync()
        try await device.run("DELETE FROM teams WHERE id = 1")
        try await device.run("UPDATE teams SET city = 'Rome' WHERE id = 2")
        #expect(device.text("SELECT count(*) FROM players") == "0")
        try await device.client.sync()
        let teams = "SELECT group_concat(id || name || ifnull(city, '-')) FROM teams"
        #expect(device.text(teams) == "1Eagleskept,2OwlsRome")
        // The device's set names the player too, and nothing keeps that.
        #expect(device.text("SELECT count(*) FROM players") == "0")
        #expect(try await server.text("SELECT count(*) FROM players") == "0")
        let report = try await device.client.check(repairing: .revert)
        #expect(report.findings.isEmpty && report.recordCount == 2)
        #expect(try await device.client.parked().isEmpty)
    }
}
