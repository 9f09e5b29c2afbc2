from .app import app as app
