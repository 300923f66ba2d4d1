/** The error that a source ended with, whatever value it is. */
export interface Failure {
  readonly error: unknown;
}
