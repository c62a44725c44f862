#ifdef __linux__
#include <features.h>
#endif
#include <sys/types.h>
#include <sys/ioctl.h>
#ifdef __linux__
#include <linux/sockios.h>
#endif
#include <curl/curl.h>

/* Swift cannot call functions with a variable number of arguments. */
static inline CURLcode martlet_curl_set_number(CURL *transfer, CURLoption option, long value) {
    return curl_easy_setopt(transfer, option, value);
}

static inline CURLcode martlet_curl_set_size(CURL *transfer, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(transfer, option, value);
}

/* libcurl copies the text, except the body of a request and the buffer of an error. */
static inline CURLcode martlet_curl_set_text(CURL *transfer, CURLoption option, const char *value) {
    return curl_easy_setopt(transfer, option, value);
}

static inline CURLcode martlet_curl_set_buffer(CURL *transfer, CURLoption option, char *value) {
    return curl_easy_setopt(transfer, option, value);
}

static inline CURLcode martlet_curl_set_fields(CURL *transfer, struct curl_slist *fields) {
    return curl_easy_setopt(transfer, CURLOPT_HTTPHEADER, fields);
}

static inline CURLcode martlet_curl_set_context(CURL *transfer, CURLoption option, void *context) {
    return curl_easy_setopt(transfer, option, context);
}

static inline CURLcode martlet_curl_speak_http_only(CURL *transfer) {
#if LIBCURL_VERSION_NUM >= 0x075500
    return curl_easy_setopt(transfer, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    return curl_easy_setopt(
        transfer, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

/* Sets CURLOPT_WRITEFUNCTION or CURLOPT_HEADERFUNCTION, which libcurl calls in the same way. */
static inline CURLcode martlet_curl_set_receiver(
    CURL *transfer, CURLoption option, curl_write_callback receiver) {
    return curl_easy_setopt(transfer, option, receiver);
}

static inline void *martlet_curl_context(CURL *transfer) {
    char *context = 0;
    curl_easy_getinfo(transfer, CURLINFO_PRIVATE, &context);
    return context;
}

/* Returns the bytes of the body that the other end's system has acknowledged: those handed over,
   less those that wait in the socket. */
static inline long long martlet_curl_sent(CURL *transfer) {
    curl_off_t handed = 0;
    curl_socket_t made = CURL_SOCKET_BAD;
    int waiting = 0;
    curl_easy_getinfo(transfer, CURLINFO_SIZE_UPLOAD_T, &handed);
    curl_easy_getinfo(transfer, CURLINFO_ACTIVESOCKET, &made);
#ifdef __linux__
    if (made != CURL_SOCKET_BAD && ioctl(made, SIOCOUTQ, &waiting) != 0) waiting = 0;
#endif
    return (long long)handed - waiting;
}

/* Returns a transfer that has ended, and its result; null if none has ended. */
static inline CURL *martlet_curl_next_ended(CURLM *transfers, CURLcode *code) {
    int left = 0;
    CURLMsg *message;
    while ((message = curl_multi_info_read(transfers, &left)) != 0) {
        if (message->msg != CURLMSG_DONE) continue;
        *code = message->data.result;
        return message->easy_handle;
    }
    return 0;
}
