/**
 * Why no test detects a mutant, by folder of `src` and by file: it has no visible effect, or none that is documented.
 *
 * A reason is `{ why }`. `code` (a part of the line), `from` (the text before), `to` (the text after) and `mutator` restrict the mutants
 * to which it applies.
 */
const byFolder = {
  protocol: {
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
      { code: "value.endsWith('GMT')", mutator: 'MethodExpression', why: '`Date.parse` accepts a second GMT.' },
    ],
  },
  operators: {
    'merge-map-bounded.ts': [
      {
        mutator: 'OptionalChaining',
        why: 'There is a subscriber whenever a value arrives. The check is for the type.',
      },
    ],
    'decode/io-ts-check.ts': [
      { mutator: 'OptionalChaining', why: 'A context has a root, and a record its parts. The check is for the type.' },
      {
        from: 'codec.type !== undefined',
        to: 'true',
        why: 'A codec with such a tag has a type. The check is for the type.',
      },
      { to: "codec.decode.name.endsWith('bound ')", why: 'The decoder of io-ts has no name of its own.' },
    ],
    'distinct-recent.ts': [
      { code: 'inOrder.size > 0', why: 'Without an oldest entry its time counts as now, which has not expired.' },
      { code: 'if (at > now) now = at', why: 'Assigning the same time changes nothing.' },
    ],
    'connection-status.ts': [
      {
        from: "status.state === 'reconnecting'",
        to: 'true',
        why: 'Only this state has a next attempt. The check is for the type.',
      },
    ],
    'bounded/ring.ts': [{ code: 'firstSlots', why: 'The ring grows, so its first size has no visible effect.' }],
    'node/to-readable.ts': [
      {
        code: 'let wants = false',
        why: 'Before the first read, one value is in the stream instead of the queue. This has no visible effect.',
      },
    ],
    'items/event-time.ts': [
      {
        code: 'if (time > this.newest) this.newest = time',
        mutator: 'EqualityOperator',
        why: 'Assigning the same value changes nothing.',
      },
    ],
    'bounded/bounded-reader.ts': [
      {
        code: "this.#state = 'ended'",
        mutator: 'StringLiteral',
        why: 'The last state of a reader is never compared with itself.',
      },
      {
        code: 'if (this.#queue.size > 0) this.pull()',
        why: 'With an empty queue `pull()` does nothing. The check saves the call.',
      },
    ],
    'items/item.ts': [
      {
        code: 'isEither(value) && value._tag',
        why: 'An Either that is not a Left is a Right, which does not have that field.',
      },
    ],
    'count-window.ts': [
      {
        code: 'if (time > this.now) this.now = time',
        mutator: 'EqualityOperator',
        why: 'Assigning the same value changes nothing.',
      },
    ],
    'window/time-windows.ts': [
      {
        code: 'if (time >= this.from && time < this.until)',
        why: 'A shortcut for an item in the same windows as the one before. The general code does the same.',
      },
      {
        code: 'this.until = Math.min(',
        why: 'A shortcut for an item in the same windows as the one before. The general code does the same.',
      },
      { code: 'private until = -Infinity', why: 'Replaced before it is used: no window begins at infinity.' },
    ],
  },
  transport: {
    'connect.ts': [
      {
        code: 'export const originOf',
        to: '""',
        why: 'The text is only a key of a map. Without one of the words the keys still differ.',
      },
      {
        code: 'const hostOf',
        mutator: 'Regex',
        why: 'Only the two ends of a host name can be brackets, so the position in the pattern has no effect.',
      },
    ],
    'open-connection.ts': [
      {
        code: "return () => socket.off('data', read)",
        why: 'After the teardown both listeners have no visible effect, and the socket closes within a second.',
      },
      { code: 'if (subscriber.closed) return', why: 'A closed subscriber runs an added teardown at once.' },
    ],
    'request-ticket.ts': [
      {
        mutator: 'OptionalChaining',
        code: 'socket?.bytesRead',
        why: 'A reused client has answered before, so it has a socket. The check is for the type.',
      },
      {
        code: 'const wasUnanswered',
        from: 'stored.socket() === socket',
        why: 'A client ends with its socket (`createTicketClient`), so it never has another one. This is a second check.',
      },
      { code: 'if (!isComplete) aborter.abort()', why: 'Aborting a request that has ended does nothing.' },
    ],
    'read-frames.ts': [
      {
        code: 'if (length > handler.maxFrameBytes',
        why: 'A frame of exactly the largest size is left to `ws`, which accepts it.',
      },
      {
        code: 'for (let i = 0; i < heads.length; i += 2)',
        to: 'i <= heads.length',
        why: 'There is no head after the last one, so nothing is written.',
      },
      {
        code: 'zeroHead(bytes, heads[i]',
        to: 'i >= heads.length',
        why: 'A shortcut if all texts are valid. The general code checks each of them.',
      },
    ],
    'handshake.ts': [
      {
        code: 'leftMs <= handshakeTimeoutMs',
        to: 'leftMs < handshakeTimeoutMs',
        why: 'If both deadlines end at the same time, either failure is correct.',
      },
      {
        code: 'if (webSocket === undefined) return',
        why: 'The failure was reported before. A later exception has no effect.',
      },
    ],
  },
};

/** The reasons in a list, each with the path of its file. */
export const reasons = Object.entries(byFolder).flatMap(([folder, files]) =>
  Object.entries(files).flatMap(([name, all]) => all.map((reason) => ({ file: `src/${folder}/${name}`, ...reason }))),
);
