/* examples/handlers/primes.c: a one-shot handler in C. cc -O2 -o examples/handlers/primes examples/handlers/primes.c */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *message, const char *retryable) {
  printf("{\"ok\": false, \"error\": {\"class\": \"PrimesError\", \"message\": \"%s\", \"retryable\": %s}}\n", message,
         retryable);
  return 1;
}

int main(void) {
  static char request[1 << 21]; /* an input has at most 1 MiB */
  size_t length = fread(request, 1, sizeof request - 1, stdin);
  request[length] = '\0';

  /* The worker has checked the input against the manifest's schema: the number is there. */
  char *field = strstr(request, "\"below\":");
  if (field == NULL) return fail("the input has no below", "false");
  long below = strtol(field + strlen("\"below\":"), NULL, 10);

  char *composite = calloc(below + 1, 1);
  if (composite == NULL) return fail("no memory", "true");
  long count = 0;
  for (long n = 2; n < below; n++) {
    if (composite[n]) continue;
    count++;
    for (long multiple = n * n; multiple < below; multiple += n) composite[multiple] = 1;
  }
  printf("{\"ok\": true, \"result\": {\"count\": %ld}}\n", count);
  return 0;
}
