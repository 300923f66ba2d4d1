/** Reasons for the survivors of src/protocol, by file. */
export const protocol = {
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
};
