// Reads a file of test vectors of the form hex or csv, and judges a function with it. C99, without libraries:
//   cc -o read_pack read_pack.c -lm
//   read_pack FILE             the number of cases and of columns
//   read_pack FILE --judge     also judges DecodeE4M3fn with convert-e4m3fn-to-fp32-…-full.txt
// The columns of a case are its inputs, its results and the flags, if the operation has them; manifest.json
// names them. Exits with 1 if a result is wrong, with 2 if the file cannot be read.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMostColumns = 8192, kMostLine = 1 << 18 };

// Writes the numbers of a line to `columns`. Returns how many, or -1 if the line is not a case.
static int ParseCase(const char* line, uint64_t* columns) {
  int count = 0;
  const char* at = line;
  while (*at != '\0' && *at != '\n' && *at != '\r') {
    char* end;
    errno = 0;
    const uint64_t value = strtoull(at, &end, 16);  // takes the prefix 0x of csv, too
    if (end == at || errno != 0 || count == kMostColumns) return -1;
    columns[count++] = value;
    at = end;
    if (*at == ' ' || *at == ',') ++at;
  }
  return count;
}

// Returns the value of an OCP E4M3 code: bias 7, one NaN per sign, no infinity.
static float DecodeE4M3fn(uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  if ((code & 0x7F) == 0x7F) return NAN;
  const float magnitude =
      exponent == 0 ? ldexpf((float)mantissa, -9) : ldexpf((float)(8 + mantissa), exponent - 10);
  return code & 0x80 ? -magnitude : magnitude;
}

// Returns 1 if DecodeE4M3fn has the result of the case: operand, float32 result, flags.
static int IsRight(const uint64_t* columns) {
  const float value = DecodeE4M3fn((uint8_t)columns[0]);
  const uint32_t expected = (uint32_t)columns[1];
  uint32_t bits;
  if (isnan(value)) return (expected & 0x7FFFFFFF) == 0x7FC00000;
  memcpy(&bits, &value, sizeof bits);
  return bits == expected;
}

int main(int argc, char** argv) {
  static char line[kMostLine];
  static uint64_t columns[kMostColumns];
  if (argc < 2 || argc > 3 || (argc == 3 && strcmp(argv[2], "--judge") != 0)) {
    fprintf(stderr, "usage: read_pack FILE [--judge]\n");
    return 2;
  }
  FILE* const file = fopen(argv[1], "r");
  if (file == NULL) {
    fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
    return 2;
  }
  uint64_t cases = 0, wrong = 0, number = 0;
  int width = 0;
  while (fgets(line, sizeof line, file) != NULL) {
    const int count = ParseCase(line, columns);
    ++number;
    if (count <= 0 && number == 1) continue;  // the names of the columns, in csv
    if (count <= 0 || (width != 0 && count != width) || (argc == 3 && count < 2)) {
      fprintf(stderr, "%s:%" PRIu64 ": not a case of %d columns\n", argv[1], number, width);
      return 2;
    }
    width = count;
    ++cases;
    if (argc == 3 && !IsRight(columns)) ++wrong;
  }
  fclose(file);
  printf("%s: %" PRIu64 " cases of %d columns", argv[1], cases, width);
  if (argc == 3) printf(", %" PRIu64 " wrong", wrong);
  printf("\n");
  return wrong == 0 ? 0 : 1;
}
