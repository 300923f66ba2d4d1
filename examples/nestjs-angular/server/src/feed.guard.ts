import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';

/**
 * Decides who may read the feed. THIS IS A DEMO: it lets everyone in who can reach the server, which is why that listens on 127.0.0.1.
 *
 * Put the check of your app here: the session of the cookie, or a bearer token (`provideTradeFeed({ headers })` sends one). What a page of
 * another site asks for is refused here as well, so that none can make this browser restart the feed.
 */
@Injectable()
export class FeedGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string | undefined> }>();
    const site = headers['sec-fetch-site'];
    return site === undefined || site === 'same-origin' || site === 'none';
  }
}
