import { generate } from 'selfsigned';

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Creates a certificate for a host name, or for 127.0.0.1 and localhost. */
export const certificateFor = async (
  name?: string,
  dates: { readonly notBeforeDate?: Date; readonly notAfterDate?: Date } = {},
): Promise<Certificate> => {
  const altNames = name
    ? [{ type: 2 as const, value: name }]
    : [
        { type: 7 as const, ip: '127.0.0.1' },
        { type: 2 as const, value: 'localhost' },
      ];
  const pems = await generate([{ name: 'commonName', value: name ?? 'localhost' }], {
    keyType: 'ec',
    ...dates,
    extensions: [{ name: 'subjectAltName', altNames }],
  });
  return { cert: pems.cert, key: pems.private };
};
