// loop DIGIT: executes 3 x 20,000,000 x DIGIT + 9 instructions, without any library. DIGIT is 1 to 9.
    .globl _start
_start:
    ldr x0, [sp, #16]           // argv[1]
    ldrb w1, [x0]
    sub w1, w1, #'0'
    mov x2, #11520              // 20,000,000 = 305 x 65,536 + 11,520
    movk x2, #305, lsl #16
    mul x1, x1, x2
1:  nop
    subs x1, x1, #1
    b.ne 1b
    mov x0, #0
    mov x8, #93                 // exit
    svc #0
