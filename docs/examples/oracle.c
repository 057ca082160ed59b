// Prints 1.75 + 0.3 in e4m3fn. Build: cc oracle.c $(pkg-config --cflags --libs numsim)
#include <numsim.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  const float values[2] = {1.75f, 0.3f};
  uint8_t operands[2], flags;
  uint32_t code, bits;
  float value;
  char message[200];
  numsim_format_t e4m3fn;
  if (numsim_format_by_name("e4m3fn", &e4m3fn, message, sizeof message) != NUMSIM_OK) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  numsim_status_t status = numsim_encode_array_f32(values, 2, &e4m3fn, NULL, NULL, operands, 1);
  if (status == NUMSIM_OK) {
    status =
        numsim_add(&e4m3fn, operands[0], &e4m3fn, operands[1], &e4m3fn, NULL, 0, &code, &flags);
  }
  if (status == NUMSIM_OK) status = numsim_decode_f32(&e4m3fn, code, &bits);
  if (status != NUMSIM_OK) {
    fprintf(stderr, "%s\n", numsim_status_text(status));
    return 1;
  }
  memcpy(&value, &bits, sizeof value);
  printf("%02X + %02X = %02X, %.1f, flags %02X\n", operands[0], operands[1], code, value, flags);
  return 0;
}
