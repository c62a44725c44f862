# Waiting for a process that was started in the background, for `source scripts/lib/waiting.sh`.

# until_says PROCESS FILE PATTERN: waits until the output of the process, which goes to the file, has a
# line that matches. Prints the output and fails if the process ends first, or after two minutes.
until_says() {
    local tries=0
    until grep -q -- "$3" "$2" 2> /dev/null; do
        if ! kill -0 "$1" 2> /dev/null || [ $((tries += 1)) -gt 2400 ]; then
            # Its last words may have come in between.
            ! grep -q -- "$3" "$2" 2> /dev/null || return 0
            cat "$2" >&2
            return 1
        fi
        sleep 0.05
    done
}

# until_listening PROCESS FILE: waits until a server says where it listens, and sets `address`.
until_listening() {
    until_says "$1" "$2" '^listening on ' || return 1
    address=$(sed -n 's/^listening on //p' "$2")
}
