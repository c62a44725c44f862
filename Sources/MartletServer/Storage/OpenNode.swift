internal import MartletModel
internal import MartletServerCore
internal import Synchronization
internal import SystemKit

/// The node of an open data set, on the writer's queue, and the parts of the data set that its
/// workers share.
struct OpenNode: Sendable {
    /// The node. The writer works with it, on its queue.
    let node: Confined<DataSetNode>
    /// The node's memory, from which any thread can answer.
    let feed: DataSetFeed
    /// Makes the sources that read the data set next to the node.
    let readers: any DataSetReaders
    let identity: String
    let schema: Schema
    /// CREATE statements that make a device's tables.
    let ddl: String
    /// The state of the tables as they were opened.
    let tables: Int64
    /// Reports rows that are left out.
    let unsendable: UnsendableRows
    let reports: DataSetReports
    /// Returns the time, in milliseconds since 1970.
    let now: @Sendable () -> Int64

    /// Opens the data set, and creates everything that is missing.
    ///
    /// - Parameters:
    ///   - rules: Returns the rules for the types; throws if they do not fit.
    ///   - cacheBytes: The approximate memory for the newest entries, in bytes.
    ///   - committing: Called when a commit begins (true), and when it has ended (false).
    /// - Throws: `SchemaError` if the data set cannot be brought to the schema; `StorageFault`; the
    ///   errors of the backing.
    init(
        _ backing: any DataSetBacking,
        rules: @escaping @Sendable (Schema) throws -> DataSetRules,
        cacheBytes: Int, reports: DataSetReports, now: @escaping @Sendable () -> Int64,
        committing: @escaping @Sendable (Bool) -> Void
    ) async throws {
        let unsendable = UnsendableRows { reports.reportLeftOut($0, isNew: $1) }
        let opened = Mutex<(readers: any DataSetReaders, ddl: String, tables: Int64)?>(nil)
        node = try await Confined.making(label: "martlet.writer.\(reports.dataSet)") {
            let dataSet = try backing.open(now: now(), unsendable: unsendable)
            let rules = try rules(dataSet.storage.schema)
            if rules.policies == nil, try !dataSet.storage.views.kept().typeViews.isEmpty {
                reports.reportWithoutPolicies()
            }
            let node = try DataSetNode(
                storage: dataSet.storage, log: dataSet.log,
                rules: rules.roles, cacheBytes: cacheBytes)
            node.policies = rules.policies
            node.committing = committing
            opened.withLock { $0 = (dataSet.readers, dataSet.ddl, dataSet.tables) }
            return node
        }
        (feed, identity, schema) = try await node.run { ($0.feed, $0.identity, $0.schema) }
        guard let (readers, ddl, tables) = opened.withLock({ $0 }) else {
            preconditionFailure("a node that was made has a data set that was opened")
        }
        (self.readers, self.ddl, self.tables) = (readers, ddl, tables)
        (self.unsendable, self.reports, self.now) = (unsendable, reports, now)
    }

    /// Brings the view of a person up to the log's end, and runs `body` before anything else is written.
    ///
    /// - Parameter name: The name that the person's view must have.
    /// - Throws: The storage's fault, or the one that `body` throws.
    func whenViewed(
        by person: Principal, as name: String, _ body: () throws(StorageFault) -> Void
    ) throws(StorageFault) {
        do {
            try node.wait { node in
                defer { reports.metrics.countExternal(taken: node.takeExternalCount()) }
                try node.whenViewed(by: person, as: name, now: now(), body)
            }
        } catch let fault as StorageFault {
            throw fault
        } catch {
            throw StorageFault(.failed, "the server is stopping")
        }
    }

    /// Runs `body` at a moment when the log has all external writes, for readers on other queues.
    /// The writer does its other work between the steps, and the watcher announces the new
    /// revisions.
    ///
    /// - Throws: The storage's fault, or the one that `body` throws; `StorageFault.neverCaughtUp`
    ///   if external writes do not end.
    func consistently(_ body: () throws(StorageFault) -> Void) throws(StorageFault) {
        for _ in 0..<DataSetNode.intakeSteps {
            let isCaughtUp: Bool
            do {
                isCaughtUp = try node.wait { node in
                    defer { reports.metrics.countExternal(taken: node.takeExternalCount()) }
                    return try node.whenCaughtUp(now: now(), body)
                }
            } catch let fault as StorageFault {
                reports.report(fault)
                throw fault
            } catch {
                throw StorageFault(.failed, "the server is stopping")
            }
            if isCaughtUp { return }
        }
        throw StorageFault.neverCaughtUp
    }
}
