extension Array {
    /// Returns the element below which the given percentage of an ascending array lies. The array
    /// must not be empty.
    func percentile(_ percent: Int) -> Element {
        self[Swift.min(count - 1, count * percent / 100)]
    }
}
