// Reads a file of test vectors of the form readmemh, and judges a circuit with it:
//   iverilog -g2012 -o read_pack read_pack.sv && vvp read_pack +file=convert-e4m3fn-to-fp32-….mem
// A word holds one case; the comments at the head of the file give the bits of each column. Here these are
// operand (8 bits), result (32) and flags (8). Another operation needs another Width, Cases and `judged`.

// The circuit that is judged: an OCP E4M3 code as float32.
module decode_e4m3fn (
    input  logic [ 7:0] code,
    output logic [31:0] value
);
  wire [3:0] exponent = code[6:3];
  wire [2:0] mantissa = code[2:0];
  wire [30:0] magnitude = code[6:0] == 7'h7F ? 31'h7FC00000
      : exponent != 0 ? {8'd120 + 8'(exponent), mantissa, 20'd0}
      : mantissa[2] ? {8'd120, mantissa[1:0], 21'd0}
      : mantissa[1] ? {8'd119, mantissa[0], 22'd0}
      : mantissa[0] ? {8'd118, 23'd0}
      : 31'd0;
  assign value = {code[7], magnitude};
endmodule

module read_pack;
  localparam int Width = 8 + 32 + 8;
  localparam int Cases = 256;
  logic [Width-1:0] words[Cases];
  logic [7:0] operand;
  logic [31:0] result, value;
  logic [7:0] flags;
  string file;
  int wrong = 0;

  decode_e4m3fn judged (
      .code (operand),
      .value(value)
  );

  initial begin
    if (!$value$plusargs("file=%s", file)) $fatal(1, "read_pack: +file=NAME is missing");
    $readmemh(file, words, 0, Cases - 1);
    for (int i = 0; i < Cases; i++) begin
      {operand, result, flags} = words[i];
      #1;
      if (^words[i] === 1'bx) $fatal(1, "%s: has no case %0d", file, i);
      // A NaN may have either sign.
      if (value !== result && !(value[30:0] == 31'h7FC00000 && result[30:0] == value[30:0])) begin
        $display("case %0d: operand %h, got %h, expected %h", i, operand, value, result);
        wrong++;
      end
    end
    $display("%s: %0d cases, %0d wrong", file, Cases, wrong);
    if (wrong != 0) $fatal(1, "wrong results");
    $finish;
  end
endmodule
