import type { Socket } from 'node:net';
import type { TradeFeedService } from 'rx-trade-feed/testing';
import { connectAs, postTicket } from '../testing/bare-client.js';
import { BOUND_MS, within } from './fuzz.js';

/** Returns all received bytes after the end of the connection. */
export const receivedBy = (socket: Socket): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  const isOver = new Promise<Buffer>((resolve) => socket.once('close', () => resolve(Buffer.concat(chunks))));
  return within(BOUND_MS, 'the end of a connection to the service', isOver);
};

/** Splits the bytes of a service into answers, and returns their statuses. Throws if they aren't HTTP. */
export const statusesIn = (bytes: Buffer): number[] => {
  const statuses: number[] = [];
  for (let rest = bytes.toString('latin1'); rest.length > 0;) {
    const head = /^HTTP\/1\.1 (\d{3}) [^\r\n]*\r\n(?:[!-9;-~]+: [^\r\n]*\r\n)*\r\n/.exec(rest);
    if (head === null) throw new Error(`This is no answer: ${JSON.stringify(rest.slice(0, 200))}`);
    const length = Number(/\r\ncontent-length: (\d+)\r\n/i.exec(head[0])?.[1] ?? 0);
    // Node's own refusals are chunked and empty.
    const isChunked = /\r\ntransfer-encoding: chunked\r\n/i.test(head[0]);
    statuses.push(Number(head[1]));
    rest = rest.slice(head[0].length + (isChunked ? '0\r\n\r\n'.length : length));
  }
  return statuses;
};

export type GoodClient = Awaited<ReturnType<typeof goodClient>>;

/** Connects a valid client among invalid ones. Its connection must stay open, and its key must keep getting tickets. */
export const goodClient = async (service: TradeFeedService) => {
  const key = service.createAccount({ plan: 'developer' }).createApiKey();
  const client = await connectAs(service, key);
  let sent = 0;
  return {
    /** Checks that its connection receives a frame, and that its key gets a ticket. */
    isServed: async () => {
      const n = (sent += 1);
      service.push('market', `frame ${n}`);
      const texts = await within(BOUND_MS, 'a frame for a good client', client.first(n));
      if (texts.at(-1) !== `frame ${n}`) throw new Error('A good client got another frame.');
      const { status } = await within(BOUND_MS, 'a ticket for a good client', postTicket(service, key));
      if (status !== 200) throw new Error(`A good client got no ticket, but ${status}.`);
    },
    [Symbol.asyncDispose]: async () => {
      client.ws.close();
      await client.closed;
    },
  };
};
