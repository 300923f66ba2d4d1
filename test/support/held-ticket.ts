import type { ServerResponse } from 'node:http';
import { resetSocket } from './reset-socket.js';
import type { Issued, Seen } from './ten-rules/seen.js';

/** A ticket request that waits for an answer from the test. */
export interface HeldTicket {
  readonly subscription: number;
  /** Whether the connection served an earlier request. The client may then repeat the request once. */
  readonly isWarm: boolean;
  /** Answers 200 with a ticket of this lifetime. */
  readonly issue: (lifetimeMs: number) => void;
  /** Answers with another status. */
  readonly refuse: (status: number, headers?: Readonly<Record<string, string>>, body?: string) => void;
  /** Sends raw bytes, then ends the connection. */
  readonly answerRaw: (bytes: string) => void;
  readonly reset: () => void;
  /** Resolves when the request is answered or the connection is closed. */
  readonly done: Promise<void>;
}

interface Held {
  readonly subscription: number;
  readonly n: number;
  /** The origin for `wss_url`. */
  readonly address: string;
  readonly response: ServerResponse;
  readonly see: (seen: Seen) => void;
}

const requestsOver = new WeakMap<object, number>();

/** Creates the held ticket request of a response. */
export const heldTicket = ({ subscription, n, address, response, see }: Held): HeldTicket => {
  const { socket } = response;
  const before = requestsOver.get(socket as object) ?? 0;
  requestsOver.set(socket as object, before + 1);

  let isDone = false;
  let finish: () => void;
  const done = new Promise<void>((resolve) => (finish = resolve));
  const end = (outcome: { readonly ticket?: Issued; readonly retryAfterMs?: number } = {}) => {
    if (isDone) return;
    isDone = true;
    see({ what: 'ticket-answered', at: performance.now(), ...outcome });
    finish();
  };
  response.on('close', () => end()).on('error', () => undefined);

  return {
    subscription,
    isWarm: before > 0,
    issue: (lifetimeMs) => {
      // Every ticket has a different address and subprotocol: the client must use the returned ones.
      const ticket = `planted-ticket-${subscription}-${n}`;
      const path = `/ws/${n}?session=${n}`;
      const subprotocol = `mmp.trade-batch.v${n}`;
      // A `Date` header has whole seconds.
      const now = Math.floor(Date.now() / 1_000) * 1_000;
      end({ ticket: { ticket, path, subprotocol } });
      response.writeHead(200, { 'content-type': 'application/json', date: new Date(now).toUTCString() }).end(
        JSON.stringify({
          ticket,
          token_type: 'Bearer',
          expires_at: new Date(now + lifetimeMs).toISOString(),
          wss_url: `${address}${path}`,
          feed: 'market',
          subprotocol,
        }),
      );
    },
    refuse: (status, headers = {}, body = '{"error":"refused"}') => {
      const seconds = Number(headers['retry-after']);
      end(seconds > 0 ? { retryAfterMs: seconds * 1_000 } : {});
      response.writeHead(status, { date: new Date().toUTCString(), ...headers }).end(body);
    },
    answerRaw: (bytes) => {
      end();
      socket?.end(bytes);
    },
    reset: () => {
      end();
      if (socket) resetSocket(socket);
    },
    done,
  };
};
