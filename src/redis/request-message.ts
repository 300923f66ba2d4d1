/** A request: Redis has none, so the message contains the channel of the reply. */
export interface RequestMessage {
  readonly replyTo: string;
  readonly data: Uint8Array;
}

/** Returns the bytes of a request: the length of the channel's name, the name, and the data. */
export const writeRequest = ({ replyTo, data }: RequestMessage): Buffer => {
  const name = Buffer.from(replyTo);
  return Buffer.concat([Buffer.from([name.byteLength >> 8, name.byteLength & 0xff]), name, data]);
};

/** Reads a request. */
export const readRequest = (bytes: Uint8Array): RequestMessage => {
  const message = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = 2 + (message.byteLength < 2 ? 0 : message.readUInt16BE(0));
  return { replyTo: message.toString('utf8', 2, end), data: message.subarray(end) };
};
