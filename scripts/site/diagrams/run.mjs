// Runs operators in virtual time and records what they emit. One character of a diagram is 100 ms. The live diagrams of the site run this in the page.
import { Frame, TradeFeedError } from 'rx-trade-feed/browser';
import { Observable } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';

export const unitMs = 100;

const encoder = new TextEncoder();

const lost = {
  ...{ code: 'connection-lost', verdict: 'renew', stage: 'stream' },
  ...{ summary: 'The connection broke off.', meaning: 'The connection broke off.', advice: 'Nothing to do.' },
};
const failureAt = (endedAt) => new TradeFeedError({ ...lost, endedAt });

// Each event by its letter. Small letters are frames.
const events = {
  T: (at) => ({ type: 'ticket-requested', at, feed: 'market' }),
  O: (at, connection) => ({ type: 'opened', at, feed: 'market', connection, completeFrom: at }),
  X: (at) => ({ type: 'disconnected', at, failure: failureAt(at) }),
  R: (at) => ({ type: 'reconnecting', at, delayMs: 3 * unitMs, attempt: 1, verdict: 'renew' }),
};

const labels = { 'ticket-requested': 'ticket', disconnected: 'lost', reconnecting: 'waiting' };

/** Returns how an event or a frame is drawn. */
export const showEvent = (value) =>
  value.type === 'frame'
    ? { label: value.text(), kind: 'frame' }
    : { label: labels[value.type] ?? value.type, kind: value.type === 'gap' ? 'gap' : 'event' };

/**
 * Reads a line such as `Oa-b--X---Oc|` into messages: `{ at, value, label, kind }`. `Oa` in parentheses have the same time: `(Oa)`. After an outage, `opened` is
 * followed by the gap, as with `deliveryDelayMs: 0`, unless the line has a `G` in its place. `payloads` has the text of a frame whose payload isn't its letter.
 */
export const messagesOf = (line, payloads = {}) => {
  const messages = [];
  let [slot, isGroup, connection, openedAt, lostAt] = [0, false, 0, 0, undefined];
  for (const letter of line) {
    const at = slot * unitMs;
    const add = (value, shown = showEvent(value)) => messages.push({ at, value, ...shown });
    const addGap = () => {
      add({ type: 'gap', from: lostAt, to: openedAt, durationMs: openedAt - lostAt, failure: failureAt(lostAt) });
      lostAt = undefined;
    };
    if (letter === '(') isGroup = true;
    else if (letter === ')') isGroup = false;
    else if (letter === '|') add(undefined, { label: 'complete', kind: 'end' });
    else if (letter === 'G') addGap();
    else if (letter in events) {
      if (letter === 'O') [connection, openedAt] = [connection + 1, at];
      add(events[letter](at, connection));
      if (letter === 'X') lostAt = at;
      if (letter === 'O' && lostAt !== undefined && !line.includes('G')) addGap();
    } else if (letter !== '-') {
      const payload = encoder.encode(payloads[letter] ?? letter);
      add(new Frame('market', payload, false, at, connection), { label: letter, kind: 'frame' });
    }
    if (!isGroup && letter !== '(') slot += 1;
  }
  return messages;
};

/** Returns an Observable that emits the messages at their times. */
export const sourceOf = (messages, scheduler) =>
  new Observable((subscriber) => {
    for (const { at, value, kind } of messages) {
      const act = () => (kind === 'end' ? subscriber.complete() : subscriber.next(value));
      subscriber.add(scheduler.schedule(act, at));
    }
  });

/**
 * Runs one source through pipelines. Returns a row for the source, unless its line is empty, and one for each pipeline, whose messages have the label
 * and kind that `show` returns for a value. In the run, the timers of RxJS have its virtual time.
 *
 * `pipelines` are `{ name, apply, show, from, to, of }`: `apply(source$, scheduler)`, subscribed from `from` to `to` (in ms). With `of`, a row
 * subscribes to the stream of another row.
 */
export const runDiagram = ({ source: line, payloads, pipelines, endMs }) => {
  const messages = messagesOf(line, payloads);
  const end = endMs ?? messages.at(-1).at + unitMs;
  const scheduler = new TestScheduler(() => true);
  const rows = pipelines.map(({ name, from, to }) => ({ name, from, to, messages: [] }));
  const source$ = sourceOf(messages, scheduler);
  const streams = pipelines.map(({ apply }) => apply?.(source$, scheduler));
  scheduler.run(() => {
    pipelines.forEach(({ show = showEvent, from = 0, to = end, of = undefined }, n) => {
      const add = (message) => rows[n].messages.push({ at: scheduler.now(), ...message });
      const follow = () => {
        const subscription = streams[of ?? n].subscribe({
          next: (value) => add({ value, ...show(value) }),
          complete: () => add({ label: 'complete', kind: 'end' }),
        });
        scheduler.schedule(() => subscription.unsubscribe(), to - from);
      };
      if (from === 0) follow();
      else scheduler.schedule(follow, from);
    });
  });
  return { end, rows: line === '' ? rows : [{ name: 'source', messages }, ...rows] };
};
