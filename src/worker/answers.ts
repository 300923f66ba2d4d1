import type { TicketSettings } from '../options.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { type Keeping, crossed, crossing } from './crossed-error.js';
import type { Answer, Question } from './messages.js';
import { asCertificate } from './certificate.js';

/** Answers a worker by a function of the user's. What it throws stays here; the worker gets its number. */
export const answerTo = (question: Question, settings: TicketSettings, keeping: Keeping): Answer<unknown> => {
  try {
    return { value: valueOf(question, settings, keeping) };
  } catch (thrown) {
    return { thrown: crossing(thrown, keeping) };
  }
};

/** Asks for the key. What is no text does not cross: it is no key either. */
export const keyAnswer = async ({ apiKey }: TicketSettings, keeping: Keeping): Promise<Answer<string | undefined>> => {
  try {
    const key: unknown = await (apiKey as () => unknown)();
    return { value: typeof key === 'string' ? key : undefined };
  } catch (thrown) {
    return { thrown: crossing(thrown, keeping) };
  }
};

// Each gives plain data, whatever a function of the user's gives.
const valueOf = (question: Question, settings: TicketSettings, keeping: Keeping): unknown => {
  switch (question.ask) {
    case 'classify': {
      const failure = crossed(question.failure, keeping) as TradeFeedError;
      return plain(settings.classify?.(failure, question.verdict));
    }
    case 'random':
      return plain(settings.backoff.random());
    case 'checkServerIdentity':
      return refusal(() => settings.tls?.checkServerIdentity?.(question.host, asCertificate(question.certificate)));
  }
};

const plain = (value: unknown): unknown =>
  typeof value === 'object' || typeof value === 'function' ? undefined : value;

// Of a refusal only the words count, and of what is thrown as well.
const refusal = (check: () => Error | undefined): string | undefined => {
  try {
    const refused = check();
    return refused?.message;
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
};
