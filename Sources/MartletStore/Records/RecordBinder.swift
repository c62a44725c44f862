internal import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// Encodes records of one type straight into the parameters of their INSERT.
///
/// The names a type encodes, and their order, are learned from its first record; of later ones they
/// are only compared. Whatever is not as expected (other names, a value the column does not take, a
/// text with a NUL) is left to the way through `RecordValues`, which also finds the words for it.
final class RecordBinder: RecordEncoder {
    /// A name the type encodes.
    struct Slot {
        let name: String
        let kind: AttributeKind
        /// Counted from 1; 0 for what the table does not take.
        let parameter: Int32
    }

    private let type: ObjectIdentifier
    private let slots: [Slot]
    private let statement: Statement
    /// Whether a negative integer may be a temporary id, for which there may be another by now.
    private let mayHoldTemporaryIDs: Bool
    /// The position of the key's column; nil for a key of several columns, or none.
    private let keySlot: Int?
    private var next = 0
    private var suits = true
    /// Whether a record of the type has come at all.
    private(set) var wasAsked = false
    /// Whether a record has been bound as a whole.
    private(set) var isBound = false
    /// The key the record carries; null where it is to be made.
    private(set) var key: SQLValue?

    init(
        type: ObjectIdentifier, slots: [Slot], key: String?, statement: Statement,
        mayHoldTemporaryIDs: Bool
    ) {
        self.mayHoldTemporaryIDs = mayHoldTemporaryIDs
        self.type = type
        self.slots = slots
        self.statement = statement
        keySlot = slots.firstIndex { $0.name == key && $0.parameter > 0 }
    }

    override var keepsContainer: Bool { true }

    /// Gets ready for the next record.
    func begin() {
        isBound = false
        key = nil
    }

    /// Binds a record's properties.
    /// - Returns: Whether all were bound; nothing was where the record is of another type.
    func bind<Item: Encodable>(_ record: Item) -> Bool {
        guard ObjectIdentifier(Item.self) == type, !isBound else { return false }
        wasAsked = true
        next = 0
        suits = true
        do {
            try record.encode(to: self)
        } catch {
            return false
        }
        isBound = suits && next == slots.count && single == nil && !isList
        return isBound
    }

    /// Gives the record the key that was made for it.
    func bind(key: SQLValue) {
        guard let keySlot else { return }
        switch key {
        case .integer(let number):
            statement.bind(slots[keySlot].parameter, integer: number)
        default:
            _ = bind(key, slots[keySlot])
        }
    }

    private func slot(_ name: String) -> Slot? {
        guard suits, next < slots.count, slots[next].name == name else {
            suits = false
            return nil
        }
        next += 1
        return slots[next - 1]
    }

    private var isKey: Bool { next - 1 == keySlot }

    private func bind(_ value: SQLValue, _ slot: Slot) -> Bool {
        guard slot.parameter > 0 else { return true }
        guard TableStatements.suits(value, slot.kind) else { return false }
        if mayHoldTemporaryIDs, case .integer(let number) = value, number < 0 { return false }
        switch value {
        case .null: statement.bindNull(slot.parameter)
        case .integer(let number): statement.bind(slot.parameter, integer: number)
        case .real(let number): statement.bind(slot.parameter, real: number)
        case .text(let text): return statement.bindUnlessNUL(slot.parameter, text: text)
        case .blob(let bytes): statement.bind(slot.parameter, blob: bytes)
        }
        return true
    }

    override func put(_ value: SQLValue, _ name: String) {
        guard let slot = slot(name) else { return }
        if isKey { key = value }
        suits = bind(value, slot)
    }

    override func putNull(_ name: String) {
        guard let slot = slot(name) else { return }
        if isKey { key = .null }
        if slot.parameter > 0 { statement.bindNull(slot.parameter) }
    }

    override func put(integer: Int64, _ name: String) {
        guard let slot = slot(name) else { return }
        guard slot.kind == .integer, slot.parameter > 0, !isKey, integer >= 0 else {
            next -= 1
            return put(.integer(integer), name)
        }
        statement.bind(slot.parameter, integer: integer)
    }

    override func put(real: Double, _ name: String) {
        guard let slot = slot(name) else { return }
        guard slot.kind == .real, slot.parameter > 0, !isKey, !real.isNaN else {
            next -= 1
            return put(real.sqlValue, name)
        }
        statement.bind(slot.parameter, real: real)
    }

    override func put(text: String, _ name: String) {
        guard let slot = slot(name) else { return }
        guard slot.kind == .text, slot.parameter > 0 else {
            next -= 1
            return put(.text(text), name)
        }
        if isKey { key = .text(text) }
        suits = statement.bindUnlessNUL(slot.parameter, text: text)
    }
}
