/** Names every refusal of the service. */
export type RefusalCode =
  | 'not-found'
  | 'method-not-allowed'
  | 'upgrade-required'
  | 'request-too-large'
  | 'credential-service-unavailable'
  | 'invalid-api-key'
  | 'account-inactive'
  | 'not-entitled'
  | 'rate-limited'
  | 'invalid-body'
  | 'unknown-feed'
  | 'not-a-websocket-handshake'
  | 'shutting-down'
  | 'ticket-missing'
  | 'ticket-unknown'
  | 'ticket-consumed'
  | 'ticket-expired'
  | 'ticket-revoked'
  | 'address-mismatch'
  | 'subprotocol-mismatch'
  | 'capacity-full';

/** An HTTP refusal: the status of the contract, a word that says why, a sentence for a person. */
export interface Refusal {
  readonly status: number;
  readonly code: RefusalCode;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A row of a table of refusals: it applies `when` the facts are such. */
export interface RefusalRule<Facts> extends Refusal {
  readonly when: (facts: Facts) => boolean;
}

/** Gives the first rule of a table that applies: the order of the rows is the order of the checks. */
export const firstRefusal = <Facts>(
  rules: readonly RefusalRule<Facts>[],
  facts: Facts,
): RefusalRule<Facts> | undefined => rules.find(({ when }) => when(facts));

/** Makes the body of a refusal: any JSON value (the contract does not show its shape). */
export type ErrorBody = (refusal: Refusal) => unknown;

/** The stand-in: `{ "error": { "code": …, "message": … } }`. */
export const defaultErrorBody: ErrorBody = ({ code, message }) => ({ error: { code, message } });
