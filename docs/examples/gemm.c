// 256 + 31 / 64 in e4m3fn, as an H200 adds it up.   cc gemm.c $(pkg-config --cflags --libs numsim)
#include <numsim.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  const char* const accumulators[2] = {"exact", "hopper-fp8-fast"};
  uint8_t terms[32], ones[32];
  char message[200];
  float sum;
  numsim_factor_t a = {.codes = terms, .code_bytes = 1}, b = {.codes = ones, .code_bytes = 1};
  if (numsim_format_by_name("e4m3fn", &a.format, message, sizeof message) != NUMSIM_OK) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  b.format = a.format;
  memset(terms, 0x08, sizeof terms);  // 1/64
  terms[0] = 0x78;                    // 256
  memset(ones, 0x38, sizeof ones);
  for (int i = 0; i < 2; ++i) {
    // A B^T of a 1 x 32 matrix and a 1 x 32 matrix.
    if (numsim_gemm(&a, &b, 1, 1, 32, accumulators[i], &sum, message, sizeof message) !=
        NUMSIM_OK) {
      fprintf(stderr, "%s\n", message);
      return 1;
    }
    printf("%s: %.6f\n", accumulators[i], sum);
  }
  return 0;
}
