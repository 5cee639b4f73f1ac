"""Settings of the example; the last line is redelivery's."""

import os
from pathlib import Path

HOME = Path(__file__).parents[1]
SECRET_KEY = os.environ.get("SECRET_KEY", "for the example only")
ALLOWED_HOSTS = ["localhost", "testserver"]
INSTALLED_APPS = ["shop"]
ROOT_URLCONF = "shop.urls"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("DATABASE", HOME / "shop.sqlite3"),
        "OPTIONS": {"transaction_mode": "IMMEDIATE"},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True

REDELIVERY_URL = os.environ["REDELIVERY_URL"]
