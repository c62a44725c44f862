/// Tokens and keys made with another library (Python's cryptography), once.
enum Samples {
    /// The claims of the tokens below.
    static let subject = "ann"

    /// The public key of `edDSA`, as a JWK has it.
    static let ed25519X = """
        QT1WB42b7ioUUa7pFLwahm3hqoc-DNcga6m5NTf4hGA
        """

    /// The same key as PEM.
    static let ed25519PEM = """
        -----BEGIN PUBLIC KEY-----
        MCowBQYDK2VwAyEAQT1WB42b7ioUUa7pFLwahm3hqoc+DNcga6m5NTf4hGA=
        -----END PUBLIC KEY-----
        """

    /// The public key of `rs256`, as a JWK has it; the exponent is AQAB.
    static let rsaModulus = """
        l1Ycjq3QDJ_9-dcluCmaPj5gQu6SrT4ym8RZfX3lejy8ofWX1UvMPM785rpayTUsqP1jdRWcn9Lnb6V59WA-\
        3Kdh4ThVUB11VI3IxxROg0zPDsS39UveUL6j4Uw1Ak7miBlsdwlJwsAf6b0VuS_uta8pIKcUl2BJk20AGSHR\
        i7XtzRX7H8ImI8jBu-6VlyC71hyZiRGzuEUbhwcXZQAHiNz16__qUfU0op4Rn-ZN4MYmiC1CQVn0dbO11bcG\
        WTbGsL28eVUsVF4K3k20kztlfCB5E6gRFtQJPRq18uSIq3CQueiLfV9H0I2wiiBgvvxifPQA_6a6RI05F5v8\
        0UQpaw
        """

    /// The same key as PEM.
    static let rsaPEM = """
        -----BEGIN PUBLIC KEY-----
        MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAl1Ycjq3QDJ/9+dcluCma
        Pj5gQu6SrT4ym8RZfX3lejy8ofWX1UvMPM785rpayTUsqP1jdRWcn9Lnb6V59WA+
        3Kdh4ThVUB11VI3IxxROg0zPDsS39UveUL6j4Uw1Ak7miBlsdwlJwsAf6b0VuS/u
        ta8pIKcUl2BJk20AGSHRi7XtzRX7H8ImI8jBu+6VlyC71hyZiRGzuEUbhwcXZQAH
        iNz16//qUfU0op4Rn+ZN4MYmiC1CQVn0dbO11bcGWTbGsL28eVUsVF4K3k20kztl
        fCB5E6gRFtQJPRq18uSIq3CQueiLfV9H0I2wiiBgvvxifPQA/6a6RI05F5v80UQp
        awIDAQAB
        -----END PUBLIC KEY-----
        """

    /// An RSA key of 1,024 bits.
    static let weakPEM = """
        -----BEGIN PUBLIC KEY-----
        MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDIdJy+DdnRsYnTZG86c8g8FRw0
        7TPhTl6MTw98ygkgnu6v8R4Dggu39iXjz/0uaO60C7IV9ud/xO/FSNqBqSyWgXvE
        LbgIcGzyTKoEXx2pox2hrgtm+u3V/3MB5UC0mCgMVkscw3K1qR3Qcs0D70KzHX5y
        KI2+bsJuLmpPBTN9BwIDAQAB
        -----END PUBLIC KEY-----
        """

    /// Signed with the Ed25519 key, named `ed`.
    static let edDSA = """
        eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCIsImtpZCI6ImVkIn0.eyJzdWIiOiJhbm4iLCJhdWQiOlsibWFy\
        dGxldCIsIm90aGVyIl0sImlzcyI6Imh0dHBzOi8vaXNzdWVyLmV4YW1wbGUiLCJleHAiOjIwMDAwMDAwMDAs\
        Im5iZiI6MTAwMDAwMDAwMCwiZGF0YXNldCI6InRlYW0iLCJyb2xlcyI6WyJjb2FjaCIsImFkbWluIl19.B79\
        FhXAZhoz_bZdLZY7f5SYAYpRbd1cVx5noW2S1gqPVwffMDJOsxcdgv1sCltT2LUeU68Z1Ra8WvTdf7AExBA
        """

    /// Signed with the RSA key, named `rsa`.
    static let rs256 = """
        eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6InJzYSJ9.eyJzdWIiOiJhbm4iLCJhdWQiOlsibWF\
        ydGxldCIsIm90aGVyIl0sImlzcyI6Imh0dHBzOi8vaXNzdWVyLmV4YW1wbGUiLCJleHAiOjIwMDAwMDAwMDA\
        sIm5iZiI6MTAwMDAwMDAwMCwiZGF0YXNldCI6InRlYW0iLCJyb2xlcyI6WyJjb2FjaCIsImFkbWluIl19.CA\
        mk5d2Psw5mKDpvjeFxcZqM2Uu84k7W7KK_PToPFOGnNsl6WFDpqF18SgxGs5nFoecZDftWGNiAmzXzcmEUHH\
        W6_I0XebBjMlSwvr-G0-sb_AHocNz8iNy9xsG84ZVcfLlmyYBFD_mbBrnOBm9TjJynmoOPiGJBeOdAyxUzaM\
        _aLdDUKCV7GR_Z921TZsxMm-pnkmm7rNkjUI15m7fzUq5Cr6RJ4vYU08naXO05-yc7fvaVUT45Ja9846oEFN\
        LLA9HRa7bq10vtTCTYq1weLV9Oea-6R1B3eBCtUZxmoux3PL6CmmVvSrBpP4-h4Lhp81olS-ynW5Xy2WGXOX\
        TMbA
        """

    /// Signed with the RSA key, but by PSS, which is another method.
    static let pss = """
        eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6InJzYSJ9.eyJzdWIiOiJhbm4iLCJhdWQiOlsibWF\
        ydGxldCIsIm90aGVyIl0sImlzcyI6Imh0dHBzOi8vaXNzdWVyLmV4YW1wbGUiLCJleHAiOjIwMDAwMDAwMDA\
        sIm5iZiI6MTAwMDAwMDAwMCwiZGF0YXNldCI6InRlYW0iLCJyb2xlcyI6WyJjb2FjaCIsImFkbWluIl19.RD\
        VCh5B0gA-_DZGdn2rqYB6YL5PKleJ4DnYf5Ki1u2UshtQ6ptTNulPxw-b2S83KBFWZ5olS1GZMS4shQpxSzL\
        Myz5-f9SVz9Nft-oFgtzkknIVZJKm02h1Bq4Mkq1jiolNXlHyY9XTm5WM7HgCXyE3_aYvBLJdi0ws-hXIqS4\
        iCuiSoMufKIDE6B5OFhqah7v3IXhpYRkmkkME-rIIGgYz6BO2kEgxSPStqbZyX5MXsAh6tsjWc9b2B4TtL1h\
        uHlrSxAiFB78Nmt7TGtIZ5j-ChnVASGun4WmgtPfkb9nO9Yhi_-85aAlyHobeIbimambYZUeuxdNh3xhExod\
        Nzig
        """
}
