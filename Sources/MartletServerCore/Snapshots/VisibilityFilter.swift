internal import MartletModel

/// A class of principals that may see the same records. A snapshot for one of them may go to all.
package struct PermissionClass: Hashable, Sendable {
    /// The name of folders for the class, of letters a–z and digits.
    package let name: String
}

/// The classes of principals for which snapshots are made: one, of those who see everything. Others
/// begin with rows.
package struct VisibilityFilter: Sendable {
    package static let everything = VisibilityFilter()

    /// Returns the class of a principal who sees everything.
    package func permissionClass(of principal: Principal) -> PermissionClass { Self.everybody }

    /// The classes for which snapshots may be made before a principal asks.
    package var permissionClasses: [PermissionClass] { [Self.everybody] }

    /// Returns an SQL expression for the records of a type that a class may see; nil if it may see
    /// all.
    package func condition(of type: String, for permissions: PermissionClass) -> String? { nil }

    private static let everybody = PermissionClass(name: "everybody")
}
