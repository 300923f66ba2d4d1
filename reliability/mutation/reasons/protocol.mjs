/** Reasons for the survivors of src/protocol, by file. */
export const protocol = {
  'loopback.ts': [
    {
      mutator: 'Regex',
      why: 'A host whose last label is a number is an IPv4 address of four numbers, or the URL does not parse: nothing can stand before the 127.',
    },
  ],
  'retry-after.ts': [
    {
      code: "text?.trim() ?? ''",
      mutator: 'StringLiteral',
      why: 'What stands in for a header that is missing is no date, whatever its words.',
    },
    {
      code: "value?.trim() ?? ''",
      mutator: 'StringLiteral',
      why: 'What stands in for a header that is missing is neither seconds nor a date, whatever its words.',
    },
    {
      code: "value.endsWith('GMT')",
      mutator: 'MethodExpression',
      why: '`Date.parse` reads a date with GMT twice as it reads it with one.',
    },
  ],
  'ticket.ts': [
    {
      code: 'rfc3339 =',
      mutator: 'Regex',
      why: '`Date.parse` refuses by itself what follows a complete RFC 3339 timestamp.',
    },
  ],
};
