/* Carries one message by libcurl and ends. A program of its own, so that `matins`, which stands
 * before other people's commands, does not load libcurl and all that it brings along.
 *
 * Standard input: items "NAME LENGTH\n", that many bytes, "\n" (carry.cc writes them). Standard
 * output: libcurl's code, the answer's status, libcurl's words for the code, each on a line; then
 * the first of what was answered. Secrets come by the input alone. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMostOfReply = 4096, kMostOfItem = 64 << 20 };

struct Body {
  const char* data;
  size_t size;
};
struct Reply {
  char data[kMostOfReply];
  size_t size;
};

static size_t KeepReply(char* data, size_t size, size_t count, void* to) {
  struct Reply* reply = to;
  size_t room = kMostOfReply - reply->size, n = size * count;
  if (n < room) room = n;
  memcpy(reply->data + reply->size, data, room);
  reply->size += room;
  return n;
}

static size_t GiveBody(char* data, size_t size, size_t count, void* from) {
  struct Body* body = from;
  size_t n = size * count;
  if (body->size < n) n = body->size;
  memcpy(data, body->data, n);
  body->data += n;
  body->size -= n;
  return n;
}

/* The next item's bytes, ended by a zero; NULL: there is none. */
static char* ReadItem(char name[32], size_t* size) {
  unsigned long length = 0;
  char* bytes;
  if (scanf("%31s %lu", name, &length) != 2 || length > kMostOfItem || getchar() != '\n')
    return NULL;
  bytes = malloc(length + 1);
  if (bytes == NULL || fread(bytes, 1, length, stdin) != length) return NULL;
  bytes[length] = '\0';
  *size = length;
  getchar();
  return bytes;
}

int main(void) {
  char name[32];
  size_t size;
  char* bytes;
  long status = 0;
  struct Body body = {"", 0};
  struct Reply reply = {"", 0};
  struct curl_slist *headers = NULL, *to = NULL;
  CURL* easy;
  CURLcode code;
  curl_global_init(CURL_GLOBAL_DEFAULT);
  easy = curl_easy_init();
  if (easy == NULL) return 70;
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "matins");
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, KeepReply);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &reply);
  while ((bytes = ReadItem(name, &size)) != NULL) {
    if (strcmp(name, "protocols") == 0) {
      curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, bytes);
    } else if (strcmp(name, "url") == 0) {
      curl_easy_setopt(easy, CURLOPT_URL, bytes);
    } else if (strcmp(name, "timeout_ms") == 0) {
      curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, atol(bytes));
    } else if (strcmp(name, "ca_file") == 0) {
      curl_easy_setopt(easy, CURLOPT_CAINFO, bytes);
    } else if (strcmp(name, "header") == 0) {
      headers = curl_slist_append(headers, bytes);
    } else if (strcmp(name, "post") == 0) {
      curl_easy_setopt(easy, CURLOPT_POST, 1L);
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, bytes);
    } else if (strcmp(name, "mail") == 0) {
      body.data = bytes;
      body.size = size;
      curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
      curl_easy_setopt(easy, CURLOPT_READFUNCTION, GiveBody);
      curl_easy_setopt(easy, CURLOPT_READDATA, &body);
    } else if (strcmp(name, "from") == 0) {
      curl_easy_setopt(easy, CURLOPT_MAIL_FROM, bytes);
    } else if (strcmp(name, "to") == 0) {
      to = curl_slist_append(to, bytes);
    } else if (strcmp(name, "user") == 0) {
      curl_easy_setopt(easy, CURLOPT_USERNAME, bytes);
    } else if (strcmp(name, "password") == 0) {
      curl_easy_setopt(easy, CURLOPT_PASSWORD, bytes);
    } else if (strcmp(name, "tls") == 0) {
      long use = strcmp(bytes, "must") == 0 ? CURLUSESSL_ALL : CURLUSESSL_TRY;
      curl_easy_setopt(easy, CURLOPT_USE_SSL, use);
    } else {
      return 70;
    }
  }
  if (headers != NULL) curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  if (to != NULL) curl_easy_setopt(easy, CURLOPT_MAIL_RCPT, to);
  code = curl_easy_perform(easy);
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  printf("%d\n%ld\n%s\n", (int)code, status, curl_easy_strerror(code));
  fwrite(reply.data, 1, reply.size, stdout);
  return fflush(stdout) == 0 ? 0 : 70;
}
