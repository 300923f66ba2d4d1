/** Reasons for the survivors of src/protocol, by file. */
export const protocol = {
  'event-id.ts': [
    { from: "''", why: 'The default for a missing id is not an id, whatever its text.' },
    { from: '[]', why: 'The first element is not used, so the epoch is still missing.' },
  ],
  'loopback.ts': [
    {
      mutator: 'Regex',
      why: 'If the last label of a host is a number, the URL parser requires an IPv4 address. So nothing can precede the 127.',
    },
  ],
  'retry-after.ts': [
    {
      code: "text?.trim() ?? ''",
      mutator: 'StringLiteral',
      why: 'The default for a missing header is not a date, whatever its text.',
    },
    {
      code: "value?.trim() ?? ''",
      mutator: 'StringLiteral',
      why: 'The default for a missing header is neither seconds nor a date, whatever its text.',
    },
    {
      code: "value.endsWith('GMT')",
      mutator: 'MethodExpression',
      why: '`Date.parse` accepts a second GMT.',
    },
  ],
  'ticket.ts': [
    {
      code: 'rfc3339 =',
      mutator: 'Regex',
      why: '`Date.parse` refuses any text after a complete RFC 3339 timestamp.',
    },
  ],
};
