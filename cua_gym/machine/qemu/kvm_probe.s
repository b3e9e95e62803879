# A kernel's first steps, in a boot sector; port 0xf4 gets 0x2a at the end.
        .code16
        .globl _start
_start: cli
        xorw %ax, %ax
        movw %ax, %ds
        movw %ax, %es
        movw %ax, %ss
        movw $0x7000, %sp
        # page tables at 0x1000: identity map of the first 1 GiB by 2 MiB pages, user accessible
        movw $0x1000, %di
        movw $0x1800, %cx
        rep stosw
        movw $0x2007, 0x1000
        movw $0x3007, 0x2000
        movw $0x3000, %di
        movl $0x87, %eax
        movw $512, %cx
1:      movl %eax, (%di)
        addl $0x200000, %eax
        addw $8, %di
        loop 1b
        movl $0x6a0, %eax              # PAE, PGE, OSFXSR, OSXMMEXCPT
        movl %eax, %cr4
        movl $0x1000, %eax
        movl %eax, %cr3
        movl $0xc0000080, %ecx         # EFER: long mode, syscall, no-execute
        rdmsr
        orl $0x901, %eax
        wrmsr
        lgdt gdtr
        movl $0x80050033, %eax         # paging, write protect, NE, ET, MP, PE
        movl %eax, %cr0
        ljmp $8, $long
        .code64
long:   movl $16, %eax
        movl %eax, %ss
        movl $0x7000, %esp
        xorl %eax, %eax
        cpuid
        rdtsc
        movl $0xc0000081, %ecx         # STAR: kernel 8 and 16, user 24+8 and 24+16
        xorl %eax, %eax
        movl $0x00180008, %edx
        wrmsr
        incl %ecx                      # LSTAR
        movl $entry, %eax
        xorl %edx, %edx
        wrmsr
        movl $0xc0000101, %ecx         # GS base, and swap
        movl $0x5000, %eax
        wrmsr
        swapgs
        movl $user, %ecx
        movl $2, %r11d
        sysretq                        # to ring 3
user:   pxor %xmm0, %xmm0
        paddq %xmm0, %xmm0
        movq $0x6000, %rax
        lock incl (%rax)
        syscall                        # and back
        hlt
entry:  swapgs
        movl $0x1000, %eax
        movq %rax, %cr3
        invlpg 0x6000
        movb $0x2a, %al
        outb %al, $0xf4
2:      hlt
        jmp 2b
        .align 8
gdt:    .quad 0
        .quad 0x00af9a000000ffff       # 8 kernel code
        .quad 0x00cf92000000ffff       # 16 kernel data
        .quad 0                        # 24 compatibility user code: unused
        .quad 0x00cff2000000ffff       # 32 user data
        .quad 0x00affa000000ffff       # 40 user code
gdtr:   .word gdtr - gdt - 1
        .long gdt
        .org 510
        .word 0xaa55
