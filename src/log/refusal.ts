import { isError } from '../protocol/type-guards.js';

/** `message`: on one line, and no full stop at the end. */
export interface Refusal {
  readonly message: string;
  readonly advice: string;
}

/** What a broker refuses, in its words, and what to do. The text of an error only decides the advice. */
export const refusalIn = (error: unknown): Refusal => {
  const { name = '', message = String(error) } = isError(error) ? error : {};
  if (error === undefined) return { message: "it doesn't answer", advice: checkEngine };
  const [, advice = checkEngine] = advices.find(([pattern]) => pattern.test(`${name} ${message}`)) ?? [];
  const line = message.replaceAll(/\s+/g, ' ').trim().slice(0, 300).replace(/\.$/, '');
  return { message: line || 'an error without a message', advice };
};

const denied = /\bNOPERM\b|permission|can't run this command/i;

/** Whether the user lacks a permission. */
export const isDenied = (error: unknown): boolean => denied.test(String(error));

const checkEngine = 'Check that the engine runs, what it logs, and the network between it and this process.';

/** NATS names its errors; Redis starts each one with a code. */
const advices: readonly (readonly [pattern: RegExp, advice: string])[] = [
  [/not enabled for account/i, 'JetStream is not enabled for the account of this user: enable it there.'],
  [/JetStreamNotEnabled|jetstream (is )?not enabled/i, 'JetStream is not enabled: start nats-server with -js.'],
  [/\b(WRONGPASS|NOAUTH)\b|Authorization|Authentication/i, 'Check the user and the password of the connection.'],
  [
    /connection (was|is) closed|closed connection/i,
    'Await `log.close()` before you close the connection, and open the log over a new one.',
  ],
  [
    denied,
    'Give the user of this connection the permissions that the guides list: "Replicas", or "Keep, read again, resume".',
  ],
  [/\bREADONLY\b/, 'Connect to the primary server: this one is its read-only copy.'],
  [
    /maximum (bytes|messages|number of streams)|insufficient (storage )?resources|resource limits|no space|\bOOM\b|\bMISCONF\b/i,
    'The store is full: raise its limit (of the stream or the account of NATS, maxmemory of Redis), or free space.',
  ],
  [
    /message size exceeds/i,
    'Raise the largest size of a message: max_msg_size of the stream, max_payload of the server.',
  ],
  [
    /subjects overlap|doesn't store the subject/i,
    'Another stream has the name or the subject: remove it, or choose another name.',
  ],
  [/stream not found/i, 'Something has removed the stream. Find out what, and open the log again.'],
  [
    /\b(MOVED|CLUSTERDOWN|CROSSSLOT)\b/,
    "Use one primary Redis server, with or without Sentinel: Redis Cluster isn't supported.",
  ],
  [
    /isn't a key of this version/,
    'The key is damaged, or of a newer version. If no replica of a newer version uses it, run ' +
      '`npx rx-trade-feed cluster resume`.',
  ],
  [/no answer in|timeout/i, 'Look at the load of the engine and of its clients, and at the network between them.'],
  [
    /no message of an owner/,
    'Run `npx rx-trade-feed cluster status`: if a replica owns the connection, the engine loses ' +
      "its messages. Make sure that no other code unsubscribes on this engine's connection.",
  ],
];
