import type { EventEmitter } from 'node:events';

const patienceMs = 8_000;

/** Waits until a text that grows matches; rejects with the text after a while, so that a failure shows what there was. */
export const waitFor = (
  emitter: EventEmitter,
  event: string,
  text: () => string,
  pattern: RegExp,
): Promise<RegExpExecArray> =>
  new Promise((resolve, reject) => {
    const look = (): void => {
      const match = pattern.exec(text());
      if (match) settle(() => resolve(match));
    };
    const timer = setTimeout(
      () => settle(() => reject(new Error(`No ${pattern} in ${patienceMs} ms; there was: ${text()}`))),
      patienceMs,
    );
    const settle = (then: () => void): void => {
      clearTimeout(timer);
      emitter.off(event, look);
      then();
    };
    emitter.on(event, look);
    look();
  });
