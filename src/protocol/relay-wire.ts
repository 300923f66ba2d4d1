/**
 * The types of the messages that a relay sends besides the events, which have none: the `event` field of Server-Sent Events (HTML,
 * 9.2). The data of events are lines of JSON, one for each event: what `rx-trade-feed listen --json` writes.
 *
 * - `hello`: the first one of an answer, `{"at": …}`: the clock of the relay in epoch ms.
 * - `heartbeat`: nothing, so that silence means something.
 * - `connect-again`: the relay ends this stream: the failure, whose verdict says when to come back. The last message.
 * - `complete`: what the relay hands on is complete. The last message.
 */
export type RelayMessageType = 'hello' | 'heartbeat' | 'connect-again' | 'complete';
