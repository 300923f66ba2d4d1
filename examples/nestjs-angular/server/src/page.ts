import type { NestExpressApplication } from '@nestjs/platform-express';
import type { ServerResponse } from 'node:http';

/** Angular puts the styles of components into the page; scripts come from files alone, and nothing from elsewhere. */
const policy =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri 'self'; frame-ancestors 'none'";

/** Serves the built page from the same address as the feed: no CORS, and one cookie for both. */
export const servePage = (app: NestExpressApplication, folder: string): void => {
  app.disable('x-powered-by');
  app.useStaticAssets(folder, {
    setHeaders: (response: ServerResponse, path: string) => {
      response.setHeader('Content-Security-Policy', policy);
      response.setHeader('X-Content-Type-Options', 'nosniff');
      response.setHeader('Referrer-Policy', 'no-referrer');
      // The names of all files but the page itself change with what is in them.
      response.setHeader('Cache-Control', path.endsWith('.html') ? 'no-cache' : 'public, max-age=31536000, immutable');
    },
  });
};
